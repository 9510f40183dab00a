package exec_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// What begins between two sessions belongs to the next one: it may not go on in the one after that.
func TestOperationThatBeginsBetweenSessionsDoesNotCross(t *testing.T) {
	for _, between := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, notAcross{everySecond(9)}, true)
			held := f.holding()
			op := newSteps("/x")
			begin := func() {
				if err := f.Go(context.Background(), &op.Operation); err != nil {
					t.Fatal(err)
				}
			}
			f.conn.Load().Expire()
			first := f.conn.Load()
			if between {
				begin()
			}
			f.connect()
			for !f.conn.Load().IsConnected() {
				<-time.After(time.Millisecond)
			}
			first.Abandon()
			synctest.Wait()
			if !between {
				begin()
			}
			synctest.Wait()
			if n := len(f.server.paths()); n != 1 {
				t.Fatalf("%d requests", n)
			}
			f.replaceSession(nil)
			held.Store(false)
			err := receive(t, op.delivered)
			if !errors.Is(err, zk.ErrSessionExpired) {
				t.Errorf("between=%v: got %v: sent %d times", between, err, len(f.server.paths()))
			}
		})
	}
}

// The same before the first session.
func TestOperationThatBeginsBeforeTheFirstSessionDoesNotCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, notAcross{everySecond(9)}, false)
		held := f.holding()
		op := newSteps("/x")
		if err := f.Go(context.Background(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		f.connect()
		for !f.conn.Load().IsConnected() {
			<-time.After(time.Millisecond)
		}
		synctest.Wait()
		f.replaceSession(nil)
		held.Store(false)
		err := receive(t, op.delivered)
		if !errors.Is(err, zk.ErrSessionExpired) {
			t.Errorf("got %v: sent %d times", err, len(f.server.paths()))
		}
	})
}
