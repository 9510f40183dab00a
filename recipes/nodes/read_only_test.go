package nodes_test

import (
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

// A server without a majority refuses all writes. The node is there as soon as there is a majority, and no listener
// hears of a refusal.
func TestPersistentNodeOnReadOnlyServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort(), curatortest.WithReadOnlyMode())
		servers := cluster.Servers()
		client := testclient.Start(t, servers[0].Addr(), framework.WithDialer(cluster.DialContext),
			framework.WithReadOnly(), framework.WithSessionTimeout(testenv.SessionTimeout),
			framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)))
		heal := cluster.Partition(servers[:1], servers[1:])
		s := &scene{T: t, ctx: testenv.Context(t), client: client}
		s.must(client.BlockUntilConnected(s.ctx))
		n := nodes.NewPersistentNode(client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.must(n.Start())
		<-time.After(20 * time.Second)
		s.must(n.Err())
		heal()
		s.next(events, nodes.Created)
		leader, err := cluster.Leader()
		s.must(err)
		if node, ok := leader.Node(keptPath); !ok || node.Stat.EphemeralOwner != client.SessionID() {
			t.Errorf("%+v", node)
		}
		s.must(n.Close(s.ctx))
	})
}
