package exec_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// An operation begins when it is let in: before that it belongs to no session and has waited for no connection.
func TestOperationThatWaitedForRoomBeginsInTheSessionThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := latent(t, notAcross{everySecond(0)})
		f.Limit(1)
		f.Start()
		f.connect()
		for !f.conn.Load().IsConnected() {
			<-time.After(time.Millisecond)
		}
		held := f.holding()
		first := newSteps("/held")
		if err := f.Begin(t.Context(), &first.Operation); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() { second <- f.Do(context.Background(), &newSteps("/second").Operation) }()
		synctest.Wait()
		<-time.After(connectTimeout + time.Second)
		held.Store(false)
		f.replaceSession(nil)
		if err := f.Wait(t.Context(), &first.Operation); !errors.Is(err, jute.ErrConnectionLoss) {
			t.Errorf("the first: %v", err)
		}
		if err := receive(t, second); err != nil {
			t.Errorf("the second, which began in the second session: %v", err)
		}
	})
}

func TestOperationThatWaitedForRoomStillWaitsForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := latent(t, everySecond(0))
		f.Limit(1)
		f.Start()
		f.connect()
		for !f.conn.Load().IsConnected() {
			<-time.After(time.Millisecond)
		}
		held := f.holding()
		first := newSteps("/held")
		if err := f.Begin(t.Context(), &first.Operation); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() { second <- f.Do(context.Background(), &newSteps("/second").Operation) }()
		synctest.Wait()
		<-time.After(connectTimeout + time.Second)
		held.Store(false)
		f.server.down.Store(true)
		f.server.cutAll() // the first fails, and the second begins
		<-time.After(2 * time.Second)
		f.server.down.Store(false)
		if err := receive(t, second); err != nil {
			t.Errorf("the second, 2 s after it began: %v", err)
		}
		_ = f.Wait(t.Context(), &first.Operation)
	})
}

// notAcross is a policy that does not let operations go on in the next session.
type notAcross struct{ pauses }

func (notAcross) Retryable(err error) bool {
	return errors.Is(err, jute.ErrConnectionLoss) && !errors.Is(err, zk.ErrSessionExpired)
}
