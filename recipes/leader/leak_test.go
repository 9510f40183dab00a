package leader_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/retry"
)

// TestClosedParticipantLeavesNothing has latches and selectors closed while they wait, whatever has happened to them.
// Then the server has the nodes and the watches of the leaders, and as many connections as there are clients; and
// nothing runs but what leads.
func TestClosedParticipantLeavesNothing(t *testing.T) {
	ctx := t.Context()
	s, server := chaos.New(t), testenv.NewServer(t)
	proxy := curatortest.NewProxyT(t, server.Addr())
	first := newClient(t, server.ConnectString())
	clients := []*framework.Client{ // whose operations are tried again, and not
		newClient(t, proxy.ConnectString(), framework.WithRetryPolicy(retry.Forever(time.Millisecond))),
		newClient(t, proxy.ConnectString(), framework.WithRetryPolicy(retry.NTimes(0, 0))),
	}
	for _, start := range candidates { // a latch and a selector do not keep each other from leading
		_, err := start(t, first).next(ctx)
		must(t, err)
	}
	packages := []string{"recipes/leader", "recipes/internal/..."}
	remains := chaos.Remains{
		Nodes:       len(candidates),
		Watches:     2, // of the latch and of the selector, on their own nodes
		Connections: 1 + len(clients),
		Goroutines:  len(candidates),
	}
	await := func() {
		t.Helper()
		for _, client := range clients {
			must(t, client.BlockUntilConnected(ctx))
		}
		s.AwaitRemains(ctx, server, remains, packages...)
	}
	await()
	before := runtime.NumGoroutine()
	for i, what := range slices.Sorted(maps.Keys(chaos.Troubles)) {
		for j, client := range clients {
			s.Note("%s, of client %d", what, j+1)
			random := s.Random(2*i + j)
			var all sync.WaitGroup
			for name, start := range candidates {
				for range testenv.Size(3, 3, 50) {
					c, pause := start(t, client), time.Duration(random.IntN(30_000))*time.Microsecond
					all.Go(func() {
						ctx, cancel := context.WithTimeout(ctx, pause)
						defer cancel()
						if _, err := c.next(ctx); err == nil {
							s.Errorf("two lead, one of them a %s", name)
						}
						if err := c.close(); err != nil {
							s.Errorf("close: %v", err)
						}
					})
				}
			}
			end := chaos.Troubles[what](&chaos.Victim{Proxy: proxy, Session: client.SessionID}, server.Addr(), random)
			all.Wait()
			end()
			await()
		}
	}
	// There may be some more of the connections. Of as many as have taken part, there would be many.
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 }, "no goroutine is left")
}
