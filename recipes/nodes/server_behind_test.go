package nodes_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/retry"
)

// The answer to the create is lost, and the next server does not know the node yet.
func TestPersistentNodeCreateLostOnServerBehind(t *testing.T) {
	t.Parallel()
	for _, mode := range []builders.CreateMode{
		builders.Ephemeral, builders.EphemeralSequential, builders.Persistent, builders.PersistentSequential,
	} {
		for i := range 4 {
			closes, syncIsLost := i&1 > 0, i&2 > 0
			t.Run(fmt.Sprint(mode, closes, syncIsLost), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
					leader, err := cluster.Leader()
					testclient.Must(t, err)
					var followers []*curatortest.Server
					for _, sv := range cluster.Servers() {
						if sv != leader {
							followers = append(followers, sv)
						}
					}
					s := &scene{T: t, ctx: t.Context(), place: followers[0]}
					s.reader = connect(t, leader, "", framework.WithDialer(cluster.DialContext))
					restore := followers[1].Faults().RefuseConnects()
					s.client = testclient.Connect(t, followers[0].Addr()+","+followers[1].Addr(),
						framework.WithDialer(cluster.DialContext), framework.WithSessionTimeout(testenv.SessionTimeout),
						framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)))
					s.must(s.client.CreateContainers(s.ctx, "/members"))
					s.settle()
					cluster.SetLag(followers[1], -1)
					in := followers[0].Faults().Add(curatortest.Rule{
						Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter,
					})
					hold := followers[1].Faults().Add(curatortest.Rule{
						Ops: []string{"connect"}, Action: curatortest.HoldRequest,
					})
					if syncIsLost {
						followers[1].Faults().Add(curatortest.Rule{
							Ops: []string{"sync"}, Count: 1, Action: curatortest.CutBefore,
						})
					}
					n := nodes.NewPersistentNode(s.client, "/members/a", mode, []byte("one"), nodes.WithProtection())
					s.must(n.Start())
					s.must(in.Wait(s.ctx))
					followers[0].Faults().RefuseConnects()
					restore()
					s.must(hold.Wait(s.ctx))
					ended, end := context.WithCancel(s.ctx)
					end()
					if closes {
						_ = n.Close(ended)
					}
					hold.Remove()
					if closes {
						s.must(n.Close(s.ctx))
						<-time.After(time.Minute)
						s.wantNoMembers()
						return
					}
					s.must(n.WaitForInitialCreate(s.ctx))
					<-time.After(time.Minute)
					s.wantMember(n.ActualPath(), "one")
				})
			})
		}
	}
}
