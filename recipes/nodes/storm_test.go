package nodes_test

import (
	"context"
	"fmt"
	"sync"
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

// A thousand nodes go through ends of the session, in three ways, and through stops of all servers that last longer
// than the session. After each of them every node is there once, in the session of its client, and nobody else's is
// touched. After Close nothing is left.
func TestPersistentNodeStorm(t *testing.T) {
	t.Parallel()
	const count, losses, restarts = 1000, 50, 20
	synctest.Test(t, func(t *testing.T) { // in memory: a stop of the servers takes its time
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
		s := &scene{T: t, ctx: t.Context()}
		start := func() *framework.Client {
			return testclient.Connect(t, cluster.ConnectString(), framework.WithDialer(cluster.DialContext),
				framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithRetryPolicy(retry.Forever(time.Second)))
		}
		s.client, s.reader = start(), start()
		_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, "/members/other", []byte("theirs"))
		s.must(err)
		var mu sync.Mutex
		present := make(map[string]bool)
		all := make([]*nodes.PersistentNode, count)
		for i := range all {
			mode := builders.Ephemeral
			if i%10 == 0 {
				mode = builders.EphemeralSequential
			}
			all[i] = nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%04d", i), mode, []byte("data"))
			all[i].AddListener(func(_ context.Context, ev nodes.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case ev.Type == nodes.Refused:
					t.Errorf("%s: %v", ev.Path, ev.Err)
				case present[ev.Path] == (ev.Type == nodes.Created):
					t.Errorf("%s: %v twice", ev.Path, ev.Type)
				}
				present[ev.Path] = ev.Type == nodes.Created
			})
			s.must(all[i].Start())
		}
		session := int64(0)
		check := func(what string) {
			t.Helper()
			defer func() { session = s.client.SessionID() }()
			testenv.Eventually(t, func() bool {
				leader, err := cluster.Leader()
				if err != nil || s.client.SessionID() == session {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				for _, n := range all {
					path := n.ActualPath()
					node, ok := leader.Node(path)
					if !ok || node.Stat.EphemeralOwner != s.client.SessionID() || !present[path] {
						return false
					}
				}
				parent, _ := leader.Node("/members")
				return len(parent.Children) == count+1
			}, what)
		}
		check("start")
		for i := range losses {
			what := fmt.Sprintf("loss %d", i)
			switch i % 3 {
			case 0:
				s.must(cluster.ExpireSession(s.client.SessionID()))
			case 1:
				s.must(s.client.Reset()) // the nodes stay for a session timeout
			default: // the client finds its session expired, and the servers keep it until its timeout
				s.must(cluster.KillSession(s.client.SessionID()))
			}
			check(what)
		}
		for i := range restarts {
			for _, server := range cluster.Servers() {
				s.must(cluster.KillServer(server))
			}
			<-time.After(3 * testenv.SessionTimeout)
			for _, server := range cluster.Servers() {
				s.must(cluster.RestartServer(server))
			}
			check(fmt.Sprintf("restart %d", i))
		}
		var closing sync.WaitGroup
		for _, n := range all {
			closing.Go(func() { s.must(n.Close(s.ctx)) })
		}
		closing.Wait()
		members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
		s.must(err)
		if len(members) != 1 || members[0] != "other" {
			t.Errorf("%d nodes are left", len(members))
		}
	})
}
