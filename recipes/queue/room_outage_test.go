package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// The connection of a put that waits for room is lost some times in a row, at its count. Meanwhile the queue changes
// and is full again: the event of that finds no place behind those of the session. Then there is room.
func TestPutThatWaitsForRoomSeesChangeBehindManyLostConnections(t *testing.T) {
	t.Parallel()
	for _, oneShot := range []bool{true, false} {
		for _, losses := range []int{3, 12} {
			t.Run(fmt.Sprintf("one-shot %t, %d losses", oneShot, losses), func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTimeTwice(t, func(t *testing.T, place, other testenv.Place, chroot string) {
					faults := place.Faults()
					if oneShot {
						faults.Add(curatortest.Rule{
							Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
						})
					}
					client, second := clientAt(t, place, chroot), clientAt(t, other, chroot)
					producer := start(t, built(builder(t, second, nil).BuildQueue()))
					putAll(t, producer, "a")
					q := start(t, built(builder(t, client, nil).MaxItems(1).BuildQueue()))
					got := newBasket(t)
					go func() { got.add(fmt.Sprint(q.Put(testenv.Context(t), "b"))) }()
					if oneShot {
						awaitWatch(t, faults, "getChildren2")
					} else {
						awaitWatch(t, faults, "addWatch")
					}
					awaitSilence(t, faults)
					faults.Add(curatortest.Rule{
						Ops: []string{"exists"}, Path: "/**" + queuePath, Action: curatortest.CutBefore, Count: losses,
					})
					hold := faults.Add(curatortest.Rule{
						Ops: []string{"exists"}, Path: "/**" + queuePath, Action: curatortest.HoldRequest, Skip: losses,
					})
					reconnected := testclient.AwaitState(testenv.Context(t), t, client, framework.Reconnected)
					faults.CutAll()
					reconnected()
					must(t, hold.Wait(testenv.Context(t)))
					removeFirst(t, second, 1)
					putAll(t, producer, "c")
					hold.Release()
					hold.Remove()
					awaitSilence(t, faults)
					<-time.After(3 * time.Second)
					removeFirst(t, second, 1)
					if end := got.await(1); end[0] != "<nil>" {
						t.Error(end)
					}
				})
			})
		}
	}
}
