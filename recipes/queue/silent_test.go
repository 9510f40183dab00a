package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// silentAt has no request answered any more from the k-th on, and returns what ends that.
func silentAt(place testenv.Place, session int64, k int) (silent *curatortest.Injection) {
	return place.Faults().Add(curatortest.Rule{
		SessionID: session, Skip: k, Count: 1, Action: curatortest.HoldReply, MayMiss: true,
	})
}

// TestCloseAfterRequestWithoutAnswerTakesFinalFlushTime has the server fall silent at each request of a consumer in
// turn.
func TestCloseAfterRequestWithoutAnswerTakesFinalFlushTime(t *testing.T) {
	t.Parallel()
	const flush = time.Second
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
				producer := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
				putAll(t, producer, numbered(3)...)
				silent := silentAt(place, client.SessionID(), k)
				defer silent.Release()
				q := built(mode(builder(t, client, func(context.Context, string) error {
					<-time.After(slowConsumption)
					return nil
				})).OnError(newReports().add).FinalFlushTime(flush).BuildQueue())
				must(t, q.Start())
				<-time.After(time.Second)
				wantClosedInTime(t, q)
				hit = silent.Hits() > 0
			})
			return hit
		})
	})
}

// slowConsumption is long enough for what is claimed ahead to be given back.
const slowConsumption = 150 * time.Millisecond

// TestLoopEndsWithItsContextAfterRequestWithoutAnswer is the same for one who pulls, and ends the context of the loop.
func TestLoopEndsWithItsContextAfterRequestWithoutAnswer(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
				producer := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
				putAll(t, producer, numbered(2)...)
				silent := silentAt(place, client.SessionID(), k)
				defer silent.Release()
				q := built(mode(builder(t, client, nil)).OnError(newReports().add).FinalFlushTime(time.Second).BuildQueue())
				must(t, q.Start())
				ctx, cancel := context.WithTimeout(testenv.Context(t), time.Second)
				defer cancel()
				end, _ := ctx.Deadline()
				for item, err := range q.Items(ctx) {
					if err == nil {
						_ = item.Done(ctx)
					}
				}
				if late := time.Since(end); late > testenv.InTime(time.Second/10) {
					t.Errorf("the loop ends %v after its context", late)
				}
				wantClosedInTime(t, q)
				hit = silent.Hits() > 0
			})
			return hit
		})
	})
}
