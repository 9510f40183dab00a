package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// TestPutBackOfADeletedItemIsRefused has an operator delete an item, or the path, while a consumer has the item.
func TestPutBackOfADeletedItemIsRefused(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(ctx context.Context, operator *framework.Client) error{
		"the item": func(ctx context.Context, operator *framework.Client) error {
			return operator.Delete().ForPath(ctx, queuePath+"/queue-0000000000")
		},
		"the path": func(ctx context.Context, operator *framework.Client) error {
			return operator.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(ctx, queuePath)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, operator := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				q := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
				putAll(t, q, "a")
				item := pullOne(t, q)
				must(t, remove(ctx, operator))
				awaitSilence(t, place.Faults())
				if err := item.Requeue(ctx); !errors.Is(err, zk.ErrNoNode) {
					t.Errorf("requeue: %v", err)
				}
				awaitEmpty(t, operator)
			})
		})
		t.Run(name+" of a consumer", func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, operator := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				g, errs := newGate("a"), newReports()
				defer g.open()
				q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
					g.pass(item)
					return errBroken
				}).LockPath(lockPath).OnError(errs.add).BuildQueue()))
				putAll(t, q, "a")
				g.awaitReached(t)
				must(t, remove(ctx, operator))
				awaitSilence(t, place.Faults())
				g.open()
				errs.await(t, 2)
				if err := errors.Join(errs.all()...); !errors.Is(err, errBroken) || !errors.Is(err, zk.ErrNoNode) {
					t.Errorf("reported is %v", err)
				}
				awaitEmpty(t, operator)
			})
		})
	}
}

var errBroken = errors.New("broken")
