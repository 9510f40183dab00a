package queue_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// What was under way when the connection was lost comes before what was not, each in its order.
func TestPutsKeepTheirOrderAfterALostConnection(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).PutWindow(300).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		for range 3 {
			held := place.Faults().Add(curatortest.Rule{
				Ops: []string{"create2", "multi"}, Count: 1, Action: curatortest.HoldRequest,
			})
			items := numbered(200)
			putItems(t, q, items[:150]...)
			must(t, held.Wait(ctx))
			place.Faults().CutAll() // nothing of it has reached the server
			putItems(t, q, items[150:]...)
			must(t, q.FlushPuts(ctx))
			got := itemsOf(t, client)
			if diff := cmp.Diff(items, got[len(got)-len(items):]); diff != "" {
				t.Errorf("in the queue (-want +got):\n%s", diff)
			}
			if want := len(items); len(got)%want > 1 {
				t.Errorf("%d nodes", len(got))
			}
		}
	})
}

// A flush waits for its own puts, also when later ones are done before them.
func TestFlushWaitsForAPutThatIsOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		ctx, client := testenv.Context(t), clientAt(t, place, "")
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		rule := func(skip int, action curatortest.Action) *curatortest.Injection {
			r := curatortest.Rule{Ops: []string{"create2"}, Path: queuePath + "/queue-", Skip: skip, Count: 1, Action: action}
			if action == curatortest.ReplyError {
				r.Err = zk.ErrNoNode
			}
			return place.Faults().Add(r)
		}
		both := rule(0, curatortest.HoldReply)
		rule(0, curatortest.ReplyError)
		again := rule(2, curatortest.HoldRequest)
		putItems(t, q, "a")
		flushed := make(chan error)
		go func() { flushed <- q.FlushPuts(ctx) }()
		synctest.Wait()
		b, err := q.PutAsync(ctx, "b")
		must(t, err)
		synctest.Wait()
		both.Release()
		_, err = b.Wait(ctx)
		must(t, err)
		must(t, again.Wait(ctx))
		synctest.Wait()
		select {
		case err := <-flushed:
			t.Errorf("flush before the put is done: %v", err)
		default:
		}
		again.Release()
		must(t, <-flushed)
	})
}
