package leader_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
)

// failingACLs panics at each call but those after the first thousand, so that a test sees the end of an endless loop.
type failingACLs struct{ calls atomic.Int64 }

func (f *failingACLs) DefaultACL() []zk.ACL { return f.ACLForPath("") }

func (f *failingACLs) ACLForPath(string) []zk.ACL {
	if f.calls.Add(1) <= 1000 {
		panic("no ACL")
	}
	return zk.WorldACL(zk.PermAll)
}

// The client of a participant is closed, and an ACL provider fails before the client can refuse anything.
func TestParticipantOfClosedClientEndsThoughItsProviderFails(t *testing.T) {
	for name, take := range map[string]func(client *framework.Client) (start, closing func() error){
		"latch": func(client *framework.Client) (start, closing func() error) {
			l := leader.NewLeaderLatch(client, electionPath)
			return l.Start, l.Close
		},
		"selector": func(client *framework.Client) (start, closing func() error) {
			lead := func(context.Context) error { return nil }
			s := leader.NewLeaderSelector(client, electionPath, lead, leader.WithAutoRequeue())
			return s.Start, s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				acls := &failingACLs{}
				client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					framework.WithACLProvider(acls))
				start, closing := take(client)
				must(t, start())
				<-time.After(3 * time.Second)
				must(t, client.Close())
				before := acls.calls.Load()
				<-time.After(time.Hour)
				if n := acls.calls.Load() - before; n > 1 {
					t.Errorf("%d calls of the provider for a closed client", n)
				}
				must(t, closing())
			})
		})
	}
}
