package listeners_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/listeners"
)

// book is a set of listeners that write down what they get.
type book struct {
	listeners.Set[string]
	lines []string
}

// add adds a listener with a name; inside, if not nil, is what it does besides.
func (b *book) add(name string, inside func()) (remove func()) {
	return b.Add(func(_ context.Context, ev string) {
		b.lines = append(b.lines, name+" "+ev)
		if inside != nil {
			inside()
		}
	})
}

// notify calls the listeners and fails if not just these lines were written.
func (b *book) notify(t *testing.T, ev string, want ...string) {
	t.Helper()
	b.lines = nil
	b.Notify(t.Context(), ev, nil)
	if diff := cmp.Diff(want, b.lines); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func TestListenersAreCalledInOrderOfAddition(t *testing.T) {
	var b book
	b.notify(t, "0")
	removeA := b.add("a", nil)
	b.add("b", nil)
	removeC := b.add("c", nil)
	b.notify(t, "1", "a 1", "b 1", "c 1")
	removeA()
	removeA() // does nothing
	b.notify(t, "2", "b 2", "c 2")
	b.add("a", nil)
	b.notify(t, "3", "b 3", "c 3", "a 3")
	removeC()
	if got := b.Len(); got != 2 {
		t.Errorf("%d listeners, want 2", got)
	}
	b.Clear()
	b.notify(t, "4")
	removeC()
	if got := b.Len(); got != 0 {
		t.Errorf("%d listeners, want 0", got)
	}
}

func TestListenerAddedTwiceIsCalledTwice(t *testing.T) {
	var l listeners.Set[int]
	var calls int
	fn := func(context.Context, int) { calls++ }
	remove := l.Add(fn)
	l.Add(fn)
	l.Notify(t.Context(), 1, nil)
	remove()
	l.Notify(t.Context(), 2, nil)
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}

func TestListenersMayChangeSetWhileCalled(t *testing.T) {
	tests := []struct {
		name string
		// inside is what the second of three listeners does, once.
		inside      func(b *book, remove []func())
		first, next []string
	}{
		{
			"removes itself", func(_ *book, remove []func()) { remove[1]() },
			[]string{"a 1", "b 1", "c 1"},
			[]string{"a 2", "c 2"},
		},
		{
			"removes the one before", func(_ *book, remove []func()) { remove[0]() },
			[]string{"a 1", "b 1", "c 1"},
			[]string{"b 2", "c 2"},
		},
		{
			"removes the one behind, which is not called any more", func(_ *book, remove []func()) { remove[2]() },
			[]string{"a 1", "b 1"},
			[]string{"a 2", "b 2"},
		},
		{
			"adds one, which is called from the next event on", func(b *book, _ []func()) { b.add("d", nil) },
			[]string{"a 1", "b 1", "c 1"},
			[]string{"a 2", "b 2", "c 2", "d 2"},
		},
		{
			"clears", func(b *book, _ []func()) { b.Clear() },
			[]string{"a 1", "b 1"},
			nil,
		},
		{
			"replaces the one behind", func(b *book, remove []func()) { remove[2](); b.add("d", nil) },
			[]string{"a 1", "b 1"},
			[]string{"a 2", "b 2", "d 2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b book
			var remove []func()
			var once sync.Once
			remove = append(remove, b.add("a", nil))
			remove = append(remove, b.add("b", func() { once.Do(func() { tt.inside(&b, remove) }) }))
			remove = append(remove, b.add("c", nil))
			b.notify(t, "1", tt.first...)
			b.notify(t, "2", tt.next...)
		})
	}
}

func TestEachListenerIsCalledThroughTheGuard(t *testing.T) {
	var b book
	b.add("a", func() { panic("in a") })
	b.add("b", nil)
	b.add("c", func() { panic("in c") })
	var caught []string
	b.Notify(t.Context(), "1", func(fn func()) {
		defer func() {
			if p := recover(); p != nil {
				caught = append(caught, fmt.Sprint(p))
			}
		}()
		fn()
	})
	if diff := cmp.Diff([]string{"a 1", "b 1", "c 1"}, b.lines); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"in a", "in c"}, caught); diff != "" {
		t.Errorf("caught (-want +got):\n%s", diff)
	}
}

func TestListenerThatEndsItsGoroutineKeepsNoEventFromOthers(t *testing.T) {
	var b book
	b.add("a", nil)
	b.add("b", runtime.Goexit)
	b.add("c", runtime.Goexit)
	b.add("d", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Notify(t.Context(), "1", func(fn func()) { fn() })
		t.Error("the goroutine has not ended")
	}()
	<-done
	if diff := cmp.Diff([]string{"a 1", "b 1", "c 1", "d 1"}, b.lines); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

type key struct{}

func TestListenersGetTheContext(t *testing.T) {
	var l listeners.Set[int]
	var got any
	l.Add(func(ctx context.Context, _ int) { got = ctx.Value(key{}) })
	l.Notify(context.WithValue(t.Context(), key{}, "v"), 1, nil)
	if got != "v" {
		t.Errorf("got %v", got)
	}
}

func TestListenersAreSafeForConcurrentUse(t *testing.T) {
	var l listeners.Set[int]
	var always, comeAndGo atomic.Int64
	l.Add(func(context.Context, int) { always.Add(1) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				remove := l.Add(func(context.Context, int) { comeAndGo.Add(1) })
				if l.Len() < 2 {
					t.Error("the listener is not there")
				}
				remove()
			}
		})
		wg.Go(func() {
			for n := range 500 {
				l.Notify(t.Context(), n, nil)
			}
		})
	}
	wg.Wait()
	if got := always.Load(); got != 2000 {
		t.Errorf("%d calls, want 2000", got)
	}
	if got := l.Len(); got != 1 {
		t.Errorf("%d listeners are left, want 1", got)
	}
}

func TestNotifyAllocatesNothing(t *testing.T) {
	var l listeners.Set[int]
	for range 3 {
		l.Add(func(context.Context, int) {})
	}
	ctx := t.Context()
	if got := testing.AllocsPerRun(100, func() { l.Notify(ctx, 1, nil) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
