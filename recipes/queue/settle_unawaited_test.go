package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestRequeueFailedAfterItsContextIsReported loses an item that is put back, after the caller has stopped waiting.
func TestRequeueFailedAfterItsContextIsReported(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client, errs := clientAt(t, place, chroot), newReports()
		q := start(t, built(builder(t, client, nil).OnError(errs.add).BuildQueue()))
		putAll(t, q, "a")
		item := pullOne(t, q)
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"create", "create2"}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldRequest,
		})
		ctx, cancel := context.WithCancel(testenv.Context(t))
		ended := make(chan error)
		go func() { ended <- item.Requeue(ctx) }()
		must(t, held.Wait(ctx))
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("requeue: %v", err)
		}
		place.Faults().Cut(client.SessionID())
		err := errs.await(t, 1)[0]
		var about *queue.ItemError
		if !errors.Is(err, queue.ErrUncertain) || !errors.As(err, &about) || !bytes.Contains(about.Data, []byte("a")) {
			t.Errorf("reported is %v", err)
		}
	})
}
