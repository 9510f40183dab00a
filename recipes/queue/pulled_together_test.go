package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

// TestItemsPutTogetherGoBackOneByOneWithoutALockPath pulls a node with three items. Without a lock path nothing has to
// be done with an item that is consumed, so what goes back does not wait for it.
func TestItemsPutTogetherGoBackOneByOneWithoutALockPath(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		requeued, last string
		want           []string
	}{
		"requeued":           {requeued: "b", last: "c", want: []string{"b"}},
		"the loop has ended": {last: "a", want: []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot)
				q := built(builder(t, client, nil).BuildQueue())
				must(t, q.Start())
				must(t, q.PutMulti(ctx, "a", "b", "c"))
				must(t, q.FlushPuts(ctx))
				for item, err := range q.Items(ctx) {
					must(t, err)
					if item.Value == tt.requeued {
						must(t, item.Requeue(ctx))
					}
					if item.Value == tt.last {
						break
					}
				}
				must(t, q.Close())
				next, stop := pullAll(ctx, start(t, built(builder(t, client, nil).BuildQueue())))
				defer stop()
				var got []string
				for range tt.want {
					got = append(got, next(t))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("the queue (-want +got):\n%s", diff)
				}
				awaitEmpty(t, client)
			})
		})
	}
}
