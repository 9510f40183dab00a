package shared_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/shared"
)

// A server without a vote is behind the others, and passes writes on.
func TestSharedThroughObserver(t *testing.T) {
	t.Parallel()
	testenv.OnObserver(t, func(t *testing.T, observer, leader testenv.Place) {
		ctx := testenv.Context(t)
		near := shared.NewSharedValue(testclient.ConnectAt(t, observer, ""), path, []byte("seed"))
		client := testclient.ConnectAt(t, leader, "")
		far := shared.NewSharedValue(client, path, []byte("other seed"))
		must := func(err error) {
			t.Helper()
			testclient.Must(t, err)
		}
		await := func(v *shared.SharedValue, want string) {
			t.Helper()
			testenv.Eventually(t, func() bool { return string(v.Value()) == want }, fmt.Sprintf("the value %q", want))
		}
		events := make(chan string, 100)
		near.AddListener(func(_ context.Context, v shared.VersionedValue[[]byte]) { events <- string(v.Value) })
		must(near.Start(ctx))
		must(far.Start(ctx))
		await(far, "seed")
		for i := range 20 {
			stale := near.VersionedValue()
			theirs, ours := fmt.Sprint("of the leader ", i), fmt.Sprint("of the observer ", i)
			must(far.SetValue(ctx, []byte(theirs)))
			set, err := near.TrySetValue(ctx, stale, []byte("late"))
			must(err)
			if got := string(near.Value()); set || got != theirs {
				t.Fatalf("set: %t; the value is %q, not %q", set, got, theirs)
			}
			if set, err = near.TrySetValue(ctx, near.VersionedValue(), []byte(ours)); !set || err != nil {
				t.Fatalf("not set: %v", err)
			}
			if got := string(near.Value()); got != ours {
				t.Errorf("the own write is not in the copy: %q", got)
			}
			await(far, ours)
		}
		must(client.Delete().ForPath(ctx, path))
		far2 := shared.NewSharedValue(client, path, []byte("again"))
		must(far2.Start(ctx))
		await(near, "again")
		for got := ""; got != "again"; {
			select {
			case got = <-events:
			case <-ctx.Done():
				t.Fatal("the listener was not called")
			}
		}
		for _, v := range []*shared.SharedValue{near, far, far2} {
			must(v.Close())
		}
	})
}

func TestValueModifiedThroughObserver(t *testing.T) {
	t.Parallel()
	testenv.OnObserver(t, func(t *testing.T, observer, leader testenv.Place) {
		ctx := testenv.Context(t)
		near := shared.NewValue(testclient.ConnectAt(t, observer, ""), "/number", codec.JSON[int]{})
		far := shared.NewValue(testclient.ConnectAt(t, leader, ""), "/number", codec.JSON[int]{})
		const each = 20
		raise := func(v *shared.Value[int]) error {
			_, err := v.Modify(ctx, func(_ context.Context, n int) (int, error) { return n + 1, nil })
			return err
		}
		raised := make(chan error, 1)
		go func() {
			for range each - 1 {
				if err := raise(far); err != nil {
					raised <- err
					return
				}
			}
			raised <- raise(far)
		}()
		for range each {
			testclient.Must(t, raise(near))
		}
		testclient.Must(t, <-raised)
		if got, _, err := far.Get(ctx); got != 2*each || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, 2*each)
		}
	})
}
