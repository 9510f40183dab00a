package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// Victim is a client that reaches its server through a proxy of its own.
type Victim struct {
	Name    string
	Proxy   *curatortest.Proxy
	Session func() int64 // the current one
}

// Cut ends the connection of one of the victims.
func Cut(victims []*Victim) Fault {
	return func(d *Disturbance) string {
		v := victims[d.Random.IntN(len(victims))]
		v.Proxy.Faults().CutAll()
		return "cut " + v.Name
	}
}

// expireLimit bounds an [Expire]. There is no second try at a busy server.
const expireLimit = 5 * time.Second

// Expire ends the session of one of the victims, at the server at addr.
func Expire(victims []*Victim, addr string) Fault {
	return func(d *Disturbance) string {
		v := victims[d.Random.IntN(len(victims))]
		session := v.Session()
		ctx, cancel := context.WithTimeout(d.Context, expireLimit)
		defer cancel()
		d.test.NoteExpiry(session)
		if curatortest.ExpireSession(ctx, addr, session) != nil {
			return "" // it was over already
		}
		return fmt.Sprintf("expired session %#x of %s", session, v.Name)
	}
}

// Freeze holds all traffic between one of the victims and its server for a time.
func Freeze(victims []*Victim, pause time.Duration) Fault {
	return func(d *Disturbance) string {
		v := victims[d.Random.IntN(len(victims))]
		d.After(pause, "thawed "+v.Name, v.Proxy.Faults().Freeze())
		return "froze " + v.Name
	}
}
