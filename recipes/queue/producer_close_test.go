package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// Close of a queue whose server says nothing ends with the final flush time, whatever the producer is waiting for.
func TestCloseWithASilentServerIsBounded(t *testing.T) {
	t.Parallel()
	const flushTime, most = 100 * time.Millisecond, time.Second
	tests := map[string]struct {
		bound int
		first bool // put before, so that the path is there
	}{
		"puts under way":     {0, true},
		"the path is made":   {0, false},
		"a put in its turn":  {10, true},
		"a full queue":       {1, true},
		"a bounded one, new": {10, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot)
				b := builder(t, client, nil).FinalFlushTime(flushTime)
				if tt.bound > 0 {
					b = b.MaxItems(tt.bound)
				}
				q := built(b.BuildQueue())
				must(t, q.Start())
				if tt.first {
					putItems(t, q, "first")
					must(t, q.FlushPuts(ctx))
				}
				restore := place.Faults().BlackHole(curatortest.ToClient)
				defer restore()
				put := make(chan error)
				go func() {
					var err error
					for i := 0; i < 20 && err == nil; i++ {
						err = q.Put(ctx, "a")
					}
					put <- err
				}()
				if tt.bound == 0 {
					must(t, <-put)
				} else {
					time.Sleep(10 * time.Millisecond)
				}
				began := time.Now()
				err := q.Close()
				if took := time.Since(began); took > testenv.InTime(most) {
					t.Errorf("it took %v", took)
				}
				if tt.bound == 0 && !errors.Is(err, queue.ErrClosed) {
					t.Errorf("close: %v", err)
				}
				if tt.bound > 0 {
					if err := <-put; !errors.Is(err, queue.ErrClosed) {
						t.Errorf("put: %v", err)
					}
				}
			})
		})
	}
}
