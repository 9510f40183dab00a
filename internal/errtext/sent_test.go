package errtext_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
)

// writers have a write each, which they return, of what they have made before.
var writers = map[string]func(ctx context.Context, t *testing.T, c *framework.Client) (write func() error){
	"create": func(ctx context.Context, _ *testing.T, c *framework.Client) func() error {
		return func() error { return failure(c.Create().ForPath(ctx, "/new", nil)) }
	},
	"create ephemeral": func(ctx context.Context, _ *testing.T, c *framework.Client) func() error {
		return func() error { return c.CreateEphemeral(ctx, "/new", nil) }
	},
	"claim": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		testclient.Must(t, c.EnsurePath(ctx, "/epoch"))
		return func() error { return failure(c.Claim(ctx, "/new", "/epoch", nil)) }
	},
	"value, set": func(ctx context.Context, _ *testing.T, c *framework.Client) func() error {
		v := shared.NewValue(c, "/new", codec.Codec[string](codec.Text{}))
		return func() error { return failure(v.Set(ctx, "a")) }
	},
	"value, modify": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		v := shared.NewValue(c, "/new", codec.Codec[string](codec.Text{}))
		testclient.Must(t, failure(v.Set(ctx, "a")))
		return func() error {
			return failure(v.Modify(ctx, func(_ context.Context, s string) (string, error) { return s + "a", nil }))
		}
	},
	"count, set": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		n := shared.NewSharedCount(c, "/new", 1)
		testclient.Must(t, n.Start(ctx))
		t.Cleanup(func() { _ = n.Close() })
		return func() error { return n.SetCount(ctx, 2) }
	},
	"count, try to set": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		n := shared.NewSharedCount(c, "/new", 1)
		testclient.Must(t, n.Start(ctx))
		t.Cleanup(func() { _ = n.Close() })
		return func() error { return failure(n.TrySetCount(ctx, n.VersionedValue(), 2)) }
	},
	"number, increment": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		n := atomic.NewDistributedAtomicLong(c, "/new", retry.NTimes(2, time.Millisecond))
		testclient.Must(t, failure(n.Increment(ctx)))
		return func() error { return failure(n.Increment(ctx)) }
	},
	"number, force": func(ctx context.Context, _ *testing.T, c *framework.Client) func() error {
		n := atomic.NewDistributedAtomicLong(c, "/new", retry.NTimes(2, time.Millisecond))
		return func() error { return n.ForceSet(ctx, 4) }
	},
	"simple queue, offer": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		testclient.Must(t, c.EnsurePath(ctx, "/new"))
		return func() error { return queue.NewSimpleDistributedQueue(c, "/new").Offer(ctx, nil) }
	},
	"simple queue, remove": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		q := queue.NewSimpleDistributedQueue(c, "/new")
		testclient.Must(t, q.Offer(ctx, []byte("a")))
		return func() error { return failure(q.Remove(ctx)) }
	},
	"id queue, remove": func(ctx context.Context, t *testing.T, c *framework.Client) func() error {
		q, err := texts(c, "/new").BuildIDQueue()
		testclient.Must(t, err)
		testclient.Must(t, q.Start())
		t.Cleanup(func() { _ = q.Close() })
		testclient.Must(t, q.Put(ctx, "a", "id"))
		testclient.Must(t, q.FlushPuts(ctx))
		return func() error { return failure(q.Remove(ctx, "id")) }
	},
}

// A write takes effect, its answer is lost, and no server answers after that. The error of the last try, which was not
// sent, must not say so of the write.
func TestWriteThatTookEffectIsNotErrNotSent(t *testing.T) {
	t.Parallel()
	for name, writer := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				client := testclient.ConnectAt(t, place, chroot, framework.WithoutEnsembleTracker(),
					framework.WithRetryPolicy(retry.NTimes(3, 10*time.Millisecond)), framework.WithConnectionTimeout(time.Second))
				ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Second)
				defer cancel()
				write := writer(ctx, t, client)
				in := place.Faults().Add(curatortest.Rule{
					Ops: []string{"create2", "setData", "delete", "multi"}, Action: curatortest.CutAfter, Count: 1,
				})
				restore := place.Faults().RefuseConnects()
				err := write()
				restore()
				switch {
				case in.Hits() != 1 || err == nil:
					t.Errorf("%d answers are lost, and the error is %v", in.Hits(), err)
				case errors.Is(err, framework.ErrNotSent), strings.Contains(err.Error(), "before it was sent"):
					t.Errorf("it says that nothing was sent: %v", err)
				case !framework.MayHaveTakenEffect(err):
					t.Errorf("it says that nothing has taken effect: %v", err)
				}
			})
		})
	}
}

func TestSentKeepsAllOtherMatches(t *testing.T) {
	op := &framework.OpError{Op: "setData", Path: "/a", Attempts: 3, Err: framework.ErrNotSent}
	err := errtext.Sent(op, framework.ErrNotSent)
	var found *framework.OpError
	if errors.Is(err, framework.ErrNotSent) || !errors.Is(err, framework.ErrConnectionLoss) ||
		!errors.As(err, &found) || found != op {
		t.Errorf("%v does not match as it should", err)
	}
	if want := "curator: setData /a (3 attempts): connection loss"; err.Error() != want {
		t.Errorf("the text is %q, want %q", err, want)
	}
	if other := errtext.Sent(framework.ErrConnectionLoss, framework.ErrNotSent); other != framework.ErrConnectionLoss {
		t.Errorf("another error becomes %v", other)
	}
}
