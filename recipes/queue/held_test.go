package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// slowCodec stops at the first item that it reads until it may go on.
type slowCodec struct {
	codec.Text
	read    *atomic.Int64
	reached chan struct{}
	goOn    chan struct{}
}

func (s slowCodec) Decode(data []byte) (string, error) {
	if s.read.Add(1) == 1 {
		close(s.reached)
		<-s.goOn
	}
	return s.Text.Decode(data)
}

// TestItemThatIsPulledWhileTheQueueIsClosedIsNotLeftLocked closes a queue while an item is read for a loop.
func TestItemThatIsPulledWhileTheQueueIsClosedIsNotLeftLocked(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue()))
		putAll(t, producer, "a")
		slow := slowCodec{
			read: new(atomic.Int64), reached: make(chan struct{}), goOn: make(chan struct{}),
		}
		q := built(queue.NewBuilder(client, nil, slow, queuePath).LockPath(lockPath).
			FinalFlushTime(time.Second).BuildQueue())
		must(t, q.Start())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for item, err := range q.Items(ctx) {
				if err != nil {
					return
				}
				if err := item.Done(ctx); err != nil && !errors.Is(err, queue.ErrClosed) {
					t.Error(err)
				}
			}
		}()
		<-slow.reached
		closed := closing(q)
		<-time.After(10 * time.Millisecond)
		close(slow.goOn)
		must(t, <-closed)
		<-ended
		if locks := names(t, others, lockPath); len(locks) > 0 {
			t.Errorf("the locks %q are left", locks)
		}
	})
}

// TestContextOfPulledItemEndsBeforeCloseReleasesIt holds back the answer to the release of an item by Close.
func TestContextOfPulledItemEndsBeforeCloseReleasesIt(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		q := built(builder(t, client, nil).LockPath(lockPath).BuildQueue())
		must(t, q.Start())
		putAll(t, q, "a")
		item := pullOne(t, q)
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldReply,
		})
		closed := closing(q)
		must(t, held.Wait(testenv.Context(t)))
		if err := context.Cause(item.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("the lock is released while the context of the item has ended with %v", err)
		}
		held.Release()
		must(t, <-closed)
	})
}
