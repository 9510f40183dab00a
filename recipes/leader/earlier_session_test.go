package leader_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/retry"
)

// candidate takes part in an election. next waits for its next leadership.
type candidate struct {
	next  func(ctx context.Context) (*leader.Leadership, error)
	close func() error
}

// candidates are both kinds of them, by name.
var candidates = map[string]func(tb testing.TB, client *framework.Client) candidate{
	"latch": func(tb testing.TB, client *framework.Client) candidate {
		tb.Helper()
		latch, _ := startLatch(tb, client, "")
		return candidate{latch.Await, latch.Close}
	},
	"selector": func(tb testing.TB, client *framework.Client) candidate {
		tb.Helper()
		f := newTurns()
		s := startSelector(tb, client, f, leader.WithAutoRequeue())
		return candidate{func(ctx context.Context) (*leader.Leadership, error) {
			select {
			case turn := <-f.began:
				return leader.LeadershipOf(turn), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, s.Close}
	},
}

// TestLeaderNodeOfEarlierSessionDoesNotLead has candidates lose their session at any request, alone or behind another,
// while the server keeps it (CURATOR-696).
func TestLeaderNodeOfEarlierSessionDoesNotLead(t *testing.T) {
	for name, start := range candidates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				server := curatortest.NewServerT(t, curatortest.InMemory())
				connect := func() *framework.Client {
					return newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
						framework.WithSessionTimeout(time.Hour), framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
				}
				s, rival := chaos.New(t), connect()
				seeds, kept := testenv.Size(30, 30, 1000), 0
				for n := range seeds {
					random, namespace := s.Random(n), fmt.Sprint(n)
					var others sync.WaitGroup
					if random.IntN(2) == 0 {
						first := start(t, rival.UsingNamespace(namespace))
						_, err := first.next(ctx)
						must(t, err)
						pause := time.Duration(random.IntN(3)) * 600 * time.Millisecond
						others.Go(func() {
							time.Sleep(pause)
							if err := first.close(); err != nil {
								t.Error(err)
							}
						})
					}
					client := connect()
					var c candidate
					e := &chaos.EarlierSession{
						Server: server, Client: client, Root: "/" + namespace, Alone: true,
						Acquire: func(ctx context.Context) (*chaos.Tenure, error) {
							if c.next == nil {
								c = start(t, client.UsingNamespace(namespace))
							}
							l, err := c.next(ctx)
							if err != nil {
								return nil, err
							}
							return &chaos.Tenure{
								Node: "/" + namespace + l.Path(), Context: l.Context(), Release: func() error { return nil },
							}, nil
						},
					}
					had, err := e.Run(ctx, s, random)
					if err != nil {
						s.Errorf("%v", err)
						return
					}
					others.Wait()
					if had {
						kept++
					}
					must(t, c.close())
					must(t, client.Close())
				}
				t.Logf("%d seeds, in %d the earlier session had nodes", seeds, kept)
				if kept < seeds/8 {
					t.Error("these are too few")
				}
			})
		})
	}
}
