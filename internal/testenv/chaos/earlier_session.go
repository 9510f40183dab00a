package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// Client is the part of a client that [EarlierSession] uses.
type Client interface {
	SessionID() int64
	BlockUntilConnected(ctx context.Context) error
}

// Holding is a grant of a client, until it is lost or released.
type Holding struct {
	Node    string // its path at the server
	Context context.Context
	Release func() error
}

// EarlierSession is a client that loses its session during an acquire, while the server keeps the session and its nodes
// for a while. The client continues with the next session. Use it in a bubble of testing/synctest, where waiting takes
// no time.
type EarlierSession struct {
	Server  *curatortest.Server
	Client  Client
	Root    string // above all nodes of this contest
	Alone   bool   // one at a time has the holding
	Acquire func(ctx context.Context) (*Holding, error)

	earlier int64
}

// endLimit bounds the wait for the end of a lost holding.
const endLimit = 10 * time.Second

// mostSkipped is the largest number of requests before the session is lost.
const mostSkipped = 8

// Run makes the client lose its session at a random request, which the server may or may not get. kept is true if the
// session had nodes then. The error describes a grant that must not be.
func (e *EarlierSession) Run(ctx context.Context, s *Test, random *rand.Rand) (kept bool, err error) {
	if err := e.Client.BlockUntilConnected(ctx); err != nil {
		return false, err
	}
	e.earlier = e.Client.SessionID()
	keep, err := e.Server.KeepSession(e.earlier)
	if err != nil {
		return false, err
	}
	rule := curatortest.Rule{
		SessionID: e.earlier, Skip: random.IntN(mostSkipped), Count: 1, Action: curatortest.HoldRequest, MayMiss: true,
	}
	if random.IntN(2) == 0 {
		rule.Action = curatortest.HoldReply
	}
	atOnce := random.IntN(2) == 0
	s.Note("%s: %v of request %d of session %#x, which ends at once: %t", e.Root, rule.Action, rule.Skip, e.earlier,
		atOnce)
	injection := e.Server.Faults().Add(rule)
	waiting, acquired := context.WithCancel(ctx)
	defer acquired()
	working, finished := context.WithCancel(ctx)
	done := make(chan result, 1)
	go func() {
		defer finished()
		done <- e.acquire(ctx, acquired)
	}()

	_ = injection.Wait(waiting) // or until there are no more requests
	_ = e.Server.KillSession(e.earlier)
	injection.Remove()
	kept = len(e.nodes(e.Root)[e.earlier]) > 0
	if !atOnce { // when the client is in line again, or has its grant
		_ = e.Server.Eventually(working, func() bool { // or until the acquire has failed
			current := e.Client.SessionID()
			return current != e.earlier && len(e.nodes(e.Root)[current]) > 0
		})
		time.Sleep(time.Second) // until it waits, or has a grant that must not be
	}
	keep()
	err = e.Server.ExpireSession(e.earlier)
	last := <-done
	errs := []error{err, last.err}
	for _, t := range last.all {
		errs = append(errs, t.Release())
	}
	return kept, errors.Join(errs...)
}

type result struct {
	all []*Holding // lost ones, and one that is not
	err error
}

// acquire acquires until it has a holding that is not lost with the earlier session. It calls acquired the first time.
// It does not release a lost holding: the node stays until the server ends the session.
func (e *EarlierSession) acquire(ctx context.Context, acquired func()) (r result) {
	for {
		t, err := e.Acquire(ctx)
		acquired()
		if err != nil {
			r.err = err
			return r
		}
		r.all = append(r.all, t)
		ok, err := e.judge(ctx, t)
		if ok || err != nil {
			r.err = err
			return r
		}
		if current := e.Client.SessionID(); current != e.earlier && len(e.nodes(e.Root)[current]) > 0 {
			// Of several locks some are lost, and the others would be in the way.
			if r.err = t.Release(); r.err != nil {
				return r
			}
		}
	}
}

// judge reports whether the holding belongs to the later session. A holding of the earlier session has to end.
func (e *EarlierSession) judge(ctx context.Context, t *Holding) (ok bool, err error) {
	node, there := e.Server.Node(t.Node)
	owner, current := node.Stat.EphemeralOwner, e.Client.SessionID()
	if there && owner == current && owner != e.earlier {
		if nodes := e.nodes(path.Dir(t.Node))[e.earlier]; e.Alone && len(nodes) > 0 {
			return false, fmt.Errorf("granted %s while there is %v of the earlier session", t.Node, nodes)
		}
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	select {
	case <-t.Context.Done():
		return false, nil
	case <-ctx.Done():
		return false, fmt.Errorf("granted %s, a node of session %#x, and the session is %#x", t.Node, owner, current)
	}
}

// nodes returns the ephemeral nodes below a path by their owners.
func (e *EarlierSession) nodes(root string) map[int64][]string {
	found := map[int64][]string{}
	var visit func(string)
	visit = func(p string) {
		node, _ := e.Server.Node(p)
		if owner := node.Stat.EphemeralOwner; owner != 0 {
			found[owner] = append(found[owner], p)
		}
		for _, child := range node.Children {
			visit(path.Join(p, child))
		}
	}
	visit(root)
	return found
}
