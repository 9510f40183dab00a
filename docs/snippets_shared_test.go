package docs_test

import (
	"context"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/zkpath"
)

var _ = []any{
	shareLimit, portLimit, setLimit, closeLimit, tryLimit, leasesOfLimit, shareMotto, modelLimits, raiseLimits,
	watchLimits, fencedLimits, tenantLimits,
}

// Limits is a type of the program.
type Limits struct{ Rate int }

func resize(int) {}

func apply(Limits) {}

func shareLimit(ctx context.Context, client *framework.Client) error {
	limit := shared.NewSharedCount(client, "/limits/jobs", 10)
	limit.AddListener(func(_ context.Context, n shared.VersionedValue[int]) {
		resize(n.Value)
	})
	if err := limit.Start(ctx); err != nil {
		return err
	}
	return nil
}

func portLimit(ctx context.Context, client *framework.Client) {
	limit := shared.NewSharedCount(client, "/limits/jobs", 10)
	limit.AddListener(func(_ context.Context, n shared.VersionedValue[int]) {
		resize(n.Value)
	})
	err := limit.Start(ctx)
	use(err)
}

func setLimit(ctx context.Context, limit *shared.SharedCount) {
	n := limit.Count()
	err := limit.SetCount(ctx, 12)
	use(n, err)
}

func closeLimit(limit *shared.SharedCount) {
	err := limit.Close()
	use(err)
}

func tryLimit(ctx context.Context, limit *shared.SharedCount) error {
	now := limit.VersionedValue()
	set, err := limit.TrySetCount(ctx, now, now.Value+1)
	switch {
	case err != nil:
		return err // see shared.ErrUncertain
	case !set:
		return nil // another client was faster
	}
	return nil
}

func leasesOfLimit(client *framework.Client, limit *shared.SharedCount) *locks.InterProcessSemaphoreV2 {
	return locks.NewInterProcessSemaphoreV2(client, "/slots", 0,
		locks.WithLeaseCount(limit))
}

func shareMotto(ctx context.Context, client *framework.Client, seed, bytes []byte) error {
	motto := shared.NewSharedValue(client, "/motto", seed)
	err := motto.Start(ctx)
	if err != nil {
		return err
	}
	return setMotto(ctx, motto, bytes)
}

func setMotto(ctx context.Context, motto *shared.SharedValue, bytes []byte) error {
	now := motto.Value()
	err := motto.SetValue(ctx, bytes)
	use(now)
	return err
}

func modelLimits(ctx context.Context, client *framework.Client) error {
	limits := shared.NewValue(client, "/limits", codec.JSON[Limits]{})
	value, stat, err := limits.Get(ctx)
	if err != nil {
		return err
	}
	use(stat)
	return setLimits(ctx, limits, value)
}

func setLimits(ctx context.Context, limits *shared.Value[Limits], value Limits) error {
	stat, err := limits.Set(ctx, value)
	use(stat)
	return err
}

func raiseLimits(ctx context.Context, limits *shared.Value[Limits]) error {
	now, err := limits.Modify(ctx, func(_ context.Context, l Limits) (Limits, error) {
		l.Rate++
		return l, nil
	})
	use(now)
	return err
}

func watchLimits(ctx context.Context, limits *shared.Value[Limits]) {
	for value, err := range limits.Watch(ctx) { // the value, and then each later one
		if err != nil {
			log.Warn("limits", "error", err) // no node, or it does not decode: the next one may
			continue
		}
		apply(value)
	}
}

func fencedLimits(ctx context.Context, hold *locks.Hold, limits *shared.Value[Limits], value Limits) error {
	op, err := limits.Op(value, -1)
	if err != nil {
		return err
	}
	_, err = hold.Transaction(ctx, op)
	return err
}

func tenantLimits() (string, error) {
	of := zkpath.Template("/app/{tenant}/limits")
	path, err := of.Expand(map[string]string{"tenant": "acme"})
	return path, err
}
