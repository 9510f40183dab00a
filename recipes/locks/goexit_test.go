package locks_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// quitter is an ACL provider that ends the goroutine of its caller once, for a node whose path has a part, as a test
// that fails does.
type quitter struct {
	part string
	done atomic.Bool
}

func (q *quitter) DefaultACL() []zk.ACL { return zk.WorldACL(zk.PermAll) }

func (q *quitter) ACLForPath(path string) []zk.ACL {
	if strings.Contains(path, q.part) && q.done.CompareAndSwap(false, true) {
		runtime.Goexit()
	}
	return nil
}

// An acquire whose goroutine ends in the middle keeps nothing that others wait for.
func TestAcquireWhoseGoroutineEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		part    string // of the path of the node for which the goroutine ends
		acquire func(ctx context.Context, client *framework.Client) error
	}{
		"semaphore": {"/leases/", func(ctx context.Context, client *framework.Client) error {
			lease, err := locks.NewInterProcessSemaphoreV2(client, "/semaphore", 1).Acquire(ctx)
			if err == nil {
				err = lease.Return(ctx)
			}
			return err
		}},
		"multi lock": {"/second", func(ctx context.Context, client *framework.Client) error {
			hold, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(client, "/first"),
				locks.NewInterProcessMutex(client, "/second")).Acquire(ctx)
			if err == nil {
				err = hold.Release(ctx)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connect := testenv.ConnectString(t)
			provider := &quitter{part: tt.part}
			quits := newClient(t, connect, framework.WithACLProvider(provider))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = tt.acquire(testenv.Context(t), quits)
			}()
			<-ended
			if !provider.done.Load() {
				t.Fatal("the goroutine has not ended in the acquire")
			}
			if err := tt.acquire(testenv.Context(t), newClient(t, connect)); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}
