package testclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/retry"
)

// Contender contends for a lock or a leadership.
type Contender struct {
	Acquire func(ctx context.Context) (*chaos.Holding, error)
	Close   func() error // after its holdings are released
}

// Contest is a kind of lock or election.
type Contest struct {
	Kind  string
	Alone bool // one at a time has the holding
	Start func(tb testing.TB, client *framework.Client) Contender
}

// LoseEarlierSessions has clients lose their session at any request of an acquire, alone or behind another, while the
// server keeps it. It fails the test if a contender gets a holding on a node of the earlier session. pick returns the
// contest of a seed.
func LoseEarlierSessions(t *testing.T, seeds int, pick func(random *rand.Rand) Contest) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		connect := func() *framework.Client {
			return Start(t, server.ConnectString(), framework.WithDialer(server.DialContext),
				framework.WithSessionTimeout(time.Hour), framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
		}
		s, rival, kept := chaos.New(t), connect(), 0
		for n := range seeds {
			random, namespace := s.Random(n), fmt.Sprint(n)
			contest := pick(random)
			var others sync.WaitGroup
			if random.IntN(2) == 0 {
				first := contest.Start(t, rival.UsingNamespace(namespace))
				holding, err := first.Acquire(ctx)
				Must(t, err)
				pause := time.Duration(random.IntN(3)) * 600 * time.Millisecond
				others.Go(func() {
					time.Sleep(pause)
					if err := errors.Join(holding.Release(), first.Close()); err != nil {
						t.Error(err)
					}
				})
			}
			client := connect()
			start := sync.OnceValue(func() Contender { return contest.Start(t, client.UsingNamespace(namespace)) })
			e := &chaos.EarlierSession{
				Server: server, Client: client, Root: "/" + namespace, Alone: contest.Alone,
				Acquire: func(ctx context.Context) (*chaos.Holding, error) {
					holding, err := start().Acquire(ctx)
					if err != nil {
						return nil, err
					}
					holding.Node = "/" + namespace + holding.Node
					return holding, nil
				},
			}
			had, err := e.Run(ctx, s, random)
			if err != nil {
				s.Errorf("%s: %v", contest.Kind, err)
				return
			}
			others.Wait()
			if had {
				kept++
			}
			Must(t, errors.Join(start().Close(), client.Close()))
		}
		t.Logf("%d seeds, in %d the earlier session had nodes", seeds, kept)
		if kept < seeds/8 {
			t.Error("these are too few")
		}
	})
}

// LeavesNothing has contenders fail under each of the troubles, with clients whose operations are retried, and not.
// Then the server has the nodes and the watches of the holders, and as many connections as there are clients, and the
// packages have no goroutines but those of the holders. hold takes with its client what the contenders contend for, and
// returns what remains while it is held. contend starts contenders; each reports what it gets.
func LeavesNothing(
	t *testing.T, hold func(client *framework.Client) chaos.Remains,
	contend func(s *chaos.Test, client *framework.Client, random *rand.Rand, all *sync.WaitGroup), packages ...string,
) {
	t.Helper()
	ctx := t.Context()
	s, server := chaos.New(t), testenv.NewServer(t)
	proxy := curatortest.NewProxyT(t, server.Addr())
	clients := []*framework.Client{
		Start(t, proxy.ConnectString(), framework.WithRetryPolicy(retry.Forever(time.Millisecond))),
		Start(t, proxy.ConnectString(), framework.WithRetryPolicy(retry.NTimes(0, 0))),
	}
	remains := hold(Start(t, server.ConnectString()))
	remains.Connections = 1 + len(clients)
	await := func() {
		t.Helper()
		for _, client := range clients {
			Must(t, client.BlockUntilConnected(ctx))
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
			contend(s, client, random, &all)
			end := chaos.Troubles[what](&chaos.Victim{Proxy: proxy, Session: client.SessionID}, server.Addr(), random)
			all.Wait()
			end()
			await()
		}
	}
	// There may be some more of the connections. Of as many contenders as have failed, there would be many.
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 }, "no goroutine is left")
}
