package builders_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// The memory of an operation is used again: each caller gets its own answer nevertheless, while connections are cut and
// callers give up at any moment.
func TestEachCallerGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	const callers, each = 32, 300
	client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(1000, time.Millisecond)))
	for i := range callers {
		tr.make(fmt.Sprintf("/n%d", i), fmt.Sprintf("data of %d", i))
	}
	// Cuts follow the work that was done, not the clock: a busy machine may need longer for a connection than the clock
	// would leave it.
	var rounds atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			path, want := fmt.Sprintf("/n%d", i), fmt.Sprintf("data of %d", i)
			for range each {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000))*time.Microsecond, cancel)
				}
				switch data, err := client.GetData().ForPath(ctx, path); {
				case err == nil && string(data) != want:
					t.Errorf("%s: %q", path, data)
				case err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("%s: %v", path, err)
				}
				switch stat, err := client.CheckExists().ForPath(ctx, path+"/none"); {
				case err == nil && stat != nil:
					t.Errorf("%s has a child %+v", path, stat)
				case err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("%s/none: %v", path, err)
				}
				_, err := client.Create().ForPath(ctx, path, nil)
				if !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, context.Canceled) {
					t.Errorf("create %s: %v", path, err)
				}
				cancel()
				if rounds.Add(1)%64 == 0 {
					proxy.Faults().CutAll()
				}
			}
		})
	}
	wg.Wait()
}
