package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// A write of the program has lost its answer and waits a minute for its retry. The locks of its client do not wait.
func TestMutexHandOverDoesNotWaitForARetryOfTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithRetryPolicy(retry.Forever(time.Minute)))
		ctx := t.Context()
		if _, err := client.Create().ForPath(ctx, "/node", nil); err != nil {
			t.Fatal(err)
		}
		one, err := locks.NewInterProcessMutex(client, "/lock").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan *locks.Hold)
		go func() {
			hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			waits <- hold
		}()
		synctest.Wait()
		server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		if err := client.SetData().InBackground(nil).ForPath(ctx, "/node", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second) // connected again
		other := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		if err := other.Delete().ForPath(ctx, one.Path()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if hold := <-waits; hold == nil || time.Since(began) > 5*time.Second {
			t.Errorf("the next one is granted after %v", time.Since(began))
		}
	})
}
