package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
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

// picky is a codec that does not read everything.
type picky struct{ codec.Text }

func (picky) Decode(data []byte) (string, error) {
	switch string(data) {
	case "refused":
		return "", errors.New("refused")
	case "fatal":
		panic("fatal")
	}
	return string(data), nil
}

func TestItemThatTheCodecCannotReadIsCorrupt(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		got := newBasket(t)
		errs := newReports()
		b := queue.NewBuilder(newClient(t, connect), got.consume, picky{}, queuePath).
			OnError(errs.add).DeadLetterPath("/dead")
		q := start(t, built(mode(b).BuildQueue()))
		for _, item := range []string{"refused", "fatal", "sound"} {
			must(t, q.Put(ctx, item))
		}
		got.await(1)
		for _, err := range errs.await(t, 2) {
			if !errors.Is(err, queue.ErrCorrupt) {
				t.Errorf("reported is %v", err)
			}
		}
		awaitNothing(t, connect)
	})
}
