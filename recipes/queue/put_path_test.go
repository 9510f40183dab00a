package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// A create that finds no path has created nothing: the path is made anew and the puts keep their order, alone or in a
// batch.
func TestPutsAfterThePathWasDeleted(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, client := testenv.Context(t), clientAt(t, place, chroot)
			q := start(t, built(mode(builder(t, client, nil)).PutWindow(200).BuildQueue()))
			putItems(t, q, "first")
			must(t, q.FlushPuts(ctx))
			for _, want := range [][]string{{"alone"}, numbered(200)} {
				deletePath(t, client, queuePath)
				putItems(t, q, want...)
				must(t, q.FlushPuts(ctx))
				if diff := cmp.Diff(want, itemsOf(t, client)); diff != "" {
					t.Errorf("in the queue (-want +got):\n%s", diff)
				}
			}
		})
	})
}

// The path is deleted while batches are under way, and more puts wait.
func TestPutsWhileThePathIsDeleted(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).PutWindow(200).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"create2", "multi"}, SessionID: client.SessionID(), Action: curatortest.HoldRequest,
		})
		want := numbered(200)
		putItems(t, q, want...)
		must(t, held.Wait(ctx))
		deletePath(t, other, queuePath)
		held.Remove()
		must(t, q.FlushPuts(ctx))
		if diff := cmp.Diff(want, itemsOf(t, client)); diff != "" {
			t.Errorf("in the queue (-want +got):\n%s", diff)
		}
	})
}

// As long as there is no path, it is tried with pauses that grow.
func TestPutsPauseWhileThereIsNoPath(t *testing.T) {
	t.Parallel()
	const minute, most = time.Minute, 100
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		creates := curatortest.Rule{
			Ops: []string{"create2"}, Path: "/**/queue-", Action: curatortest.ReplyError,
			Err: zk.ErrNoNode,
		}
		if chroot == "" {
			creates.Path = queuePath + "/queue-"
		}
		rule := place.Faults().Add(creates)
		began := time.Now()
		putItems(t, q, "a")
		if testenv.Real() {
			must(t, rule.Wait(ctx)) // a minute is too long
		} else {
			time.Sleep(minute)
		}
		rule.Remove()
		if n := rule.Hits(); n > most {
			t.Errorf("%d tries in %v", n, time.Since(began))
		}
		must(t, q.FlushPuts(ctx))
		if diff := cmp.Diff([]string{"a"}, itemsOf(t, client)); diff != "" {
			t.Errorf("in the queue (-want +got):\n%s", diff)
		}
	})
}

// The reason for which the path cannot be made is the error of the puts that need it, not of those that do not.
func TestPutsWithoutTheRightToMakeThePath(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		_, err := client.Create().ForPath(ctx, "/parent", nil)
		must(t, err)
		_, err = client.Create().ForPath(ctx, "/parent/queue", nil)
		must(t, err)
		_, err = client.SetACL().WithACL(zk.WorldACL(zk.PermAll&^zk.PermCreate)...).ForPath(ctx, "/parent")
		must(t, err)
		q := built(queue.NewBuilder(client, nil, codec.Text{}, "/parent/queue").BuildQueue())
		must(t, q.Start())
		putItems(t, q, "a")
		must(t, q.FlushPuts(ctx))
		deletePath(t, client, "/parent/queue")
		for range 2 {
			putItems(t, q, numbered(10)...)
			if err := q.FlushPuts(ctx); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("flush: %v", err)
			}
		}
		_, err = client.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(ctx, "/parent")
		must(t, err)
		putItems(t, q, "b")
		must(t, q.FlushPuts(ctx))
		must(t, q.Close())
	})
}

// A put whose answer was lost, and that is refused when it is sent again, may be in the queue all the same.
func TestPutThatIsRefusedAfterALostAnswerIsUncertain(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := built(builder(t, client, nil).LockPath(lockPath).BuildQueue())
		must(t, q.Start())
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		creates := []string{"create2"}
		place.Faults().Add(curatortest.Rule{Ops: creates, Count: 1, Action: curatortest.CutAfter})
		place.Faults().Add(curatortest.Rule{
			Ops: creates, Skip: 1, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		putItems(t, q, "a")
		if err := q.FlushPuts(ctx); !errors.Is(err, queue.ErrUncertain) || !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("flush: %v", err)
		}
		must(t, q.Close())
	})
}
