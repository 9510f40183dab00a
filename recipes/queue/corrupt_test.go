package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

var corrupt = [][]byte{
	{}, {0, 1, 0, 1}, {0, 1, 0, 2, 2}, {0, 1, 0, 1, 1, 0x7f, 0xff, 0xff, 0xff, 2}, []byte("by hand"),
}

// putCorrupt puts what is corrupt, and a sound item behind it.
func putCorrupt(t *testing.T, client *framework.Client, sound interface {
	Put(ctx context.Context, item string) error
	FlushPuts(ctx context.Context) error
},
) {
	t.Helper()
	ctx := testenv.Context(t)
	create := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
	for _, data := range corrupt {
		if _, err := create.ForPath(ctx, queuePath+"/queue-", data); err != nil {
			t.Fatal(err)
		}
	}
	must(t, sound.Put(ctx, "sound"))
	must(t, sound.FlushPuts(ctx))
}

func TestCorruptItemStaysAndIsReported(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		connect := testenv.ConnectString(t)
		client := newClient(t, connect)
		got, failed := newBasket(t), newFailures()
		q := start(t, built(mode(builder(t, client, got.consume)).OnError(failed.notify).BuildQueue()))
		putCorrupt(t, client, q)
		got.await(1)
		for _, data := range corrupt {
			var item *queue.ItemError
			err := failed.next(t)
			if !errors.Is(err, queue.ErrCorrupt) || !errors.As(err, &item) || !bytes.Equal(item.Data, data) {
				t.Errorf("got %v, want of %q", err, data)
			}
		}
		must(t, q.Put(testenv.Context(t), "another")) // and they are not in the way
		if diff := cmp.Diff([]string{"sound", "another"}, got.await(2)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		testenv.Eventually(t, func() bool {
			return len(children(t, connect, queuePath)) == len(corrupt) && len(children(t, connect, lockPath)) == 0
		}, "they stay, unlocked")
		if n := len(failed.errs); n != 0 {
			t.Errorf("got %d times more", n)
		}
	})
}

func TestCorruptItemGoesToTheHandler(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		connect := testenv.ConnectString(t)
		client := newClient(t, connect)
		got := newBasket(t)
		handled := make(chan queue.Corrupt, len(corrupt))
		failed := newFailures()
		q := start(t, built(mode(builder(t, client, got.consume)).OnError(failed.notify).
			OnCorrupt(func(_ context.Context, item queue.Corrupt) error {
				handled <- item
				switch len(handled) {
				case 1:
					return errors.New("cannot handle the first")
				case 2:
					panic("nor the second")
				}
				return nil
			}).BuildQueue()))
		putCorrupt(t, client, q)
		got.await(1)
		for _, data := range corrupt {
			if item := <-handled; !bytes.Equal(item.Data, data) || !errors.Is(item.Err, queue.ErrCorrupt) {
				t.Errorf("handled %+v, want %q", item, data)
			}
		}
		testenv.Eventually(t, func() bool {
			return len(children(t, connect, queuePath)) == 2 && len(children(t, connect, lockPath)) == 0
		}, "those that were handled are gone")
		if n := len(failed.errs); n != 2 {
			t.Errorf("got %d times", n)
		}
	})
}

func TestCorruptItemIsMovedToTheDeadLetters(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		const dead = "/dead"
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		got, failed := newBasket(t), newFailures()
		q := start(t, built(mode(builder(t, client, got.consume)).OnError(failed.notify).DeadLetterPath(dead).BuildQueue()))
		putCorrupt(t, client, q)
		got.await(1)
		awaitNothing(t, connect)
		var letters [][]byte
		for _, name := range children(t, connect, dead) {
			data, err := client.GetData().ForPath(ctx, dead+"/"+name)
			must(t, err)
			letters = append(letters, data)
		}
		if diff := cmp.Diff(corrupt, letters); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDeadLettersOfAQueueThatIsThereBefore(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		const dead = "/dead/letters"
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, queuePath+"/queue-0000000000", corrupt[1])
		must(t, err)
		failed := newFailures()
		start(t, built(mode(builder(t, client, newBasket(t).consume)).OnError(failed.notify).
			DeadLetterPath(dead).BuildQueue()))
		testenv.Eventually(t, func() bool {
			return len(children(t, connect, dead)) == 1 && len(children(t, connect, queuePath)) == 0
		}, "it is moved")
		if err := failed.next(t); !errors.Is(err, queue.ErrCorrupt) || len(failed.errs) != 0 {
			t.Errorf("got %v and %d more", err, len(failed.errs))
		}
	})
}

// picky is a serializer that does not read everything.
type picky struct{ queue.String }

func (picky) Deserialize(data []byte) (string, error) {
	switch string(data) {
	case "refused":
		return "", errors.New("refused")
	case "fatal":
		panic("fatal")
	}
	return string(data), nil
}

func TestItemThatTheSerializerCannotReadIsCorrupt(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		got := newBasket(t)
		handled := make(chan queue.Corrupt, 2)
		b := queue.NewBuilder(newClient(t, connect), got.consume, picky{}, queuePath).
			OnCorrupt(func(_ context.Context, item queue.Corrupt) error { handled <- item; return nil })
		q := start(t, built(mode(b).BuildQueue()))
		for _, item := range []string{"refused", "fatal", "sound"} {
			must(t, q.Put(ctx, item))
		}
		got.await(1)
		for range 2 {
			if item := <-handled; !errors.Is(item.Err, queue.ErrCorrupt) {
				t.Errorf("handled %+v", item)
			}
		}
		awaitNothing(t, connect)
	})
}

// TestCorruptHandlerClosesTheQueue calls Close, which waits for the handler until the end of its context.
func TestCorruptHandlerClosesTheQueue(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client, errs, queues := clientAt(t, place, chroot), newReports(), make(chan stringQueue, 1)
			closed := make(chan error, 1)
			q := built(mode(builder(t, client, newBasket(t).consume)).OnError(errs.add).FinalFlushTime(time.Second).
				OnCorrupt(func(context.Context, queue.Corrupt) error {
					closed <- (<-queues).Close()
					return nil
				}).BuildQueue())
			queues <- q
			must(t, q.Start())
			path := queuePath + "/queue-0"
			if _, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(t), path, nil); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-closed:
				must(t, err)
			case <-time.After(callbackLimit):
				t.Fatal("the handler waits for itself")
			}
			if err := errs.await(t, 1)[0]; !errors.Is(err, queue.ErrCorrupt) || !errors.Is(err, queue.ErrClosed) {
				t.Errorf("reported is %v", err)
			}
			if items := names(t, client, queuePath); len(items) != 1 {
				t.Errorf("left are %q", items)
			}
		})
	})
}
