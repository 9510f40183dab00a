package docs_test

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

var _ = []any{
	nextOrder, ordersWithReceipts, orderID, countHits, changeHits, promotedSlots, compareState, cachedHits,
}

var errBusy = errors.New("busy")

func nextOrder(ctx context.Context, client *framework.Client) (int64, error) {
	orders := atomic.NewDistributedAtomicLong(client, "/ids/orders", retry.NTimes(10, 5*time.Millisecond))
	result, err := orders.Increment(ctx)
	switch {
	case errors.Is(err, atomic.ErrUncertain):
		return 0, err // it may be counted: the outcome is unknown
	case err != nil:
		return 0, err // it is not counted
	case !result.Succeeded:
		return 0, errBusy // it is not counted: others were faster each time
	}
	return result.Post, nil
}

func ordersWithReceipts(client *framework.Client, policy retry.Policy) {
	orders := atomic.NewDistributedAtomicLong(client, "/ids/orders", policy,
		atomic.WithReceipts("/ids/receipts"))
	use(orders)
}

func orderID(ctx context.Context, orders *atomic.DistributedAtomicLong) (int64, error) {
	ids := atomic.NewCachedAtomicLong(orders, 100)
	id, err := ids.Next(ctx) // one of 100 costs a request
	if err != nil {
		return 0, err // there is no number
	}
	return id.Pre, nil
}

func countHits(ctx context.Context, client *framework.Client) (int64, error) {
	hits := atomic.NewDistributedAtomicLong(client, "/hits",
		retry.NTimes(10, 5*time.Millisecond))
	value, err := hits.Increment(ctx)
	if err != nil {
		return 0, err // see atomic.ErrUncertain
	}
	if !value.Succeeded {
		return 0, errBusy
	}
	return value.Post, nil
}

func changeHits(ctx context.Context, hits *atomic.DistributedAtomicLong) {
	now, err := hits.Get(ctx)
	use(now, err)
	_, err = hits.Add(ctx, 5)
	use(err)
	_, err = hits.Subtract(ctx, 5)
	use(err)
	err = hits.ForceSet(ctx, 0)
	use(err)
	_, err = hits.TrySet(ctx, 7)
	use(err)
	_, err = hits.CompareAndSet(ctx, 7, 8)
	use(err)
	_, err = hits.Initialize(ctx, 0)
	use(err)
}

func promotedSlots(client *framework.Client) {
	slots := atomic.NewDistributedAtomicInteger(client, "/slots",
		retry.NTimes(3, time.Millisecond),
		atomic.WithPromotedToLock(atomic.PromotedToLock{
			Path:    "/slots-lock",
			Timeout: time.Second,
			Policy:  retry.NTimes(10, 5*time.Millisecond),
		}))
	use(slots)
}

func compareState(ctx context.Context, client *framework.Client, draining, drained []byte) {
	state := atomic.NewDistributedAtomicValue(client, "/state",
		retry.NTimes(3, time.Millisecond))
	result, err := state.CompareAndSet(ctx, draining, drained)
	use(result, err)
}

func cachedHits(ctx context.Context, hits *atomic.DistributedAtomicLong) (int64, error) {
	ids := atomic.NewCachedAtomicLong(hits, 100)
	id, err := ids.Next(ctx)
	if err != nil {
		return 0, err // also atomic.ErrConflict
	}
	return id.Pre, nil
}
