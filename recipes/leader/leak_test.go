package leader_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestParticipantClosedLeavesNothing has latches and selectors closed while they wait, whatever has happened to them.
func TestParticipantClosedLeavesNothing(t *testing.T) {
	hold := func(client *framework.Client) chaos.Remains {
		for _, start := range candidates { // a latch and a selector do not keep each other from leading
			_, err := start(t, client).next(t.Context())
			must(t, err)
		}
		return chaos.Remains{
			Nodes:      len(candidates),
			Watches:    2, // of the latch and of the selector, on their own nodes
			Goroutines: len(candidates),
		}
	}
	contend := func(s *chaos.Test, client *framework.Client, random *rand.Rand, all *sync.WaitGroup) {
		for name, start := range candidates {
			for range testenv.Size(3, 3, 50) {
				c, pause := start(t, client), time.Duration(random.IntN(30_000))*time.Microsecond
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), pause)
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
	}
	testclient.LeavesNothing(t, hold, contend, "recipes/leader", "internal/waitqueue")
}
