package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestItemTooLargeToPutBackStaysAndIsDeliveredAgain fails to consume an item that is too large for a transaction,
// because the client refuses it or the server closes each connection on which it comes.
func TestItemTooLargeToPutBackStaysAndIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"for the client": false, "for the server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, errs := testenv.Context(t), clientAt(t, place, chroot), newReports()
				got, failed := newBasket(t), false
				q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
					got.add(item)
					if !failed {
						failed = true
						return errors.New("broken")
					}
					return nil
				}).LockPath(lockPath).OnError(errs.add).BuildQueue()))
				size := 1<<20 - 200 // it fits a create alone
				if cut {
					size = 5000
					place.Faults().Add(curatortest.Rule{
						Ops: []string{"multi"}, SessionID: client.SessionID(), Count: 8, Action: curatortest.CutBefore,
					})
				}
				put, err := q.PutAsync(ctx, strings.Repeat("x", size))
				must(t, err)
				_, err = put.Wait(ctx)
				must(t, err)
				began := time.Now()
				got.await(2)
				awaitEmpty(t, client)
				if pause := time.Since(began); pause < time.Second {
					t.Errorf("delivered again after %v", pause)
				}
				want, all := framework.ErrRequestTooLarge, errs.all()
				if cut {
					want = framework.ErrConnectionLoss
				}
				var about *queue.ItemError
				if len(all) != 2 || !errors.Is(all[1], want) || !errors.As(all[1], &about) {
					t.Errorf("reported are %v", all)
				}
			})
		})
	}
}
