package interop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/queue"
)

// queueKind is a queue that Go and Java have.
type queueKind struct {
	theirs string // what its commands begin with
	ours   func(queue.Builder[string]) (ourQueue, error)
	put    func(ctx context.Context, q ourQueue, p put) error
}

type ourQueue interface {
	Start() error
	FlushPuts(ctx context.Context) error
	Close() error
}

// put is a node that is put into a queue, and its attributes in that kind of queue.
type put struct {
	Items    []string `json:"items"` // an idQueue of Java puts one at a time
	Priority int      `json:"priority,omitempty"`
	EpochMs  int64    `json:"epochMs,omitempty"`
	ItemID   string   `json:"itemId,omitempty"`
}

func (p put) due() time.Time { return time.UnixMilli(p.EpochMs) }

var (
	plainQueue = queueKind{
		theirs: "queue",
		ours:   func(b queue.Builder[string]) (ourQueue, error) { return b.BuildQueue() },
		put: func(ctx context.Context, q ourQueue, p put) error {
			return q.(*queue.DistributedQueue[string]).PutMulti(ctx, p.Items...)
		},
	}
	priorityQueue = queueKind{
		theirs: "priorityQueue",
		ours:   func(b queue.Builder[string]) (ourQueue, error) { return b.BuildPriorityQueue(0) },
		put: func(ctx context.Context, q ourQueue, p put) error {
			return q.(*queue.DistributedPriorityQueue[string]).PutMulti(ctx, p.Priority, p.Items...)
		},
	}
	delayQueue = queueKind{
		theirs: "delayQueue",
		ours:   func(b queue.Builder[string]) (ourQueue, error) { return b.BuildDelayQueue() },
		put: func(ctx context.Context, q ourQueue, p put) error {
			return q.(*queue.DistributedDelayQueue[string]).PutMulti(ctx, p.due(), p.Items...)
		},
	}
	idQueue = queueKind{
		theirs: "idQueue",
		ours:   func(b queue.Builder[string]) (ourQueue, error) { return b.BuildIDQueue() },
		put: func(ctx context.Context, q ourQueue, p put) error {
			return q.(*queue.DistributedIDQueue[string]).PutMulti(ctx, p.ItemID, p.Items...)
		},
	}
	queueKinds = []queueKind{plainQueue, priorityQueue, delayQueue, idQueue}
)

// spot is where a queue is.
type spot struct{ items, locks string } // locks is empty if the items are not locked

// newSpot returns an unused place.
func newSpot(locked bool) spot {
	at := spot{items: fmt.Sprint(meetingPath, "/", newName())}
	if locked {
		at.locks = at.items + "'s locks"
	}
	return at
}

// queueUse is the use of a queue by a client.
type queueUse struct {
	kind     queueKind
	at       spot
	consumes bool
	failures int                    // how many items the consumer refuses before it consumes any
	expires  bool                   // the session of the client will end
	corrupt  func(*queue.ItemError) // gets the items of Go that cannot be read; nil if there should be none
}

// queueEnd is a client's end of a queue. A consumer reports "held", "refused" and "item": it holds each item whose
// text begins with "hold" until it is to let go.
type queueEnd interface {
	put(ctx context.Context, puts ...put) error // waits until all are in the queue
	next(ctx context.Context) (delivery, error) // waits for the next
	letGo()
	remove(ctx context.Context, id string) (int, error)
}

// delivery is what a consumer reports of an item.
type delivery struct{ kind, item string }

func (m *meeting) openQueue(s side, use queueUse) queueEnd {
	m.t.Helper()
	switch s := s.(type) {
	case golang:
		return openOurs(m.t, s, use)
	case *peer:
		return openTheirs(s, use)
	}
	panic("neither Go nor Java")
}

// ourEnd is that of Go.
type ourEnd struct {
	ourQueue
	client     golang
	kind       queueKind
	failures   atomic.Int64
	deliveries chan delivery
	goOn       chan struct{}
	ended      chan error // why the context of an item that is held has ended
}

var errRefused = errors.New("refused")

func openOurs(t *testing.T, g golang, use queueUse) *ourEnd {
	t.Helper()
	e := &ourEnd{
		client: g, kind: use.kind,
		deliveries: make(chan delivery, 10_000), goOn: make(chan struct{}, 100), ended: make(chan error, 100),
	}
	e.failures.Store(int64(use.failures))
	var consumer queue.Consumer[string]
	if use.consumes {
		consumer = e.consume
	}
	b := queue.NewBuilder(g.Client, consumer, codec.Text{}, use.at.items).
		LockPath(use.at.locks).
		OnError(func(_ context.Context, err error) {
			var item *queue.ItemError
			if use.corrupt != nil && errors.Is(err, queue.ErrCorrupt) && errors.As(err, &item) {
				use.corrupt(item)
				return
			}
			if !errors.Is(err, errRefused) && (!use.expires || !errors.Is(err, queue.ErrLockLost)) {
				t.Errorf("in the background of Go: %v", err)
			}
		})
	if use.corrupt != nil {
		b = b.DeadLetterPath(use.at.items + "'s dead letters")
	}
	var err error
	if e.ourQueue, err = use.kind.ours(b); err == nil {
		err = e.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(e.goOn)
		if err := e.ourQueue.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *ourEnd) consume(ctx context.Context, item string) error {
	if strings.HasPrefix(item, "hold") {
		e.deliveries <- delivery{"held", item}
		stop := context.AfterFunc(ctx, func() { e.ended <- context.Cause(ctx) })
		<-e.goOn
		stop()
	}
	if e.failures.Add(-1) >= 0 {
		e.deliveries <- delivery{"refused", item}
		return errRefused
	}
	e.deliveries <- delivery{"item", item}
	return nil
}

func (e *ourEnd) put(ctx context.Context, puts ...put) error {
	for _, p := range puts {
		if err := e.kind.put(ctx, e.ourQueue, p); err != nil {
			return err
		}
	}
	return e.FlushPuts(ctx)
}

func (e *ourEnd) next(ctx context.Context) (delivery, error) { return receive(ctx, e.deliveries) }

func (e *ourEnd) letGo() { e.goOn <- struct{}{} }

func (e *ourEnd) remove(ctx context.Context, id string) (int, error) {
	return e.ourQueue.(*queue.DistributedIDQueue[string]).Remove(ctx, id)
}

func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return v, err
}

// theirEnd is that of Java.
type theirEnd struct{ *object }

func openTheirs(j *peer, use queueUse) theirEnd {
	j.t.Helper()
	args := interop.Args{"path": use.at.items, "consume": use.consumes, "failures": use.failures}
	if use.at.locks != "" {
		args["lockPath"] = use.at.locks
	}
	return theirEnd{j.newObject(use.kind.theirs, use.kind.theirs+"Start", args)}
}

func (e theirEnd) put(ctx context.Context, puts ...put) error {
	for _, p := range puts {
		op, args := "PutMulti", interop.Args{"items": p.Items}
		if len(p.Items) == 1 {
			op, args = "Put", interop.Args{"item": p.Items[0]}
		}
		args["priority"], args["epochMs"], args["itemId"] = p.Priority, p.EpochMs, p.ItemID
		if err := e.j.Call(ctx, e.kind+op, e.args(args), nil); err != nil {
			return err
		}
	}
	var flushed bool
	err := e.j.Call(ctx, e.kind+"Flush", e.args(nil), &flushed)
	if err == nil && !flushed {
		err = errors.New("Java has not put all")
	}
	return err
}

func (e theirEnd) next(ctx context.Context) (delivery, error) {
	ev, err := e.j.WaitEvent(ctx, func(ev interop.Event) bool { return ev.Name == e.name })
	return delivery{ev.Kind, ev.Item}, err
}

func (e theirEnd) letGo() {
	e.j.t.Helper()
	e.do("LetGo", nil, nil)
}

func (e theirEnd) remove(ctx context.Context, id string) (n int, err error) {
	err = e.j.Call(ctx, e.kind+"Remove", e.args(interop.Args{"itemId": id}), &n)
	return n, err
}

func (m *meeting) put(e queueEnd, puts ...put) {
	m.t.Helper()
	if err := e.put(m.ctx, puts...); err != nil {
		m.t.Fatalf("%T: %v", e, err)
	}
}

// reports waits until the end has reported so many items in this way, and returns them.
func (m *meeting) reports(e queueEnd, kind string, n int) (items []string) {
	m.t.Helper()
	for range n {
		got, err := e.next(m.ctx)
		if err != nil || got.kind != kind {
			m.t.Fatalf("%T reports %+v, %v, and not of another %s after %q", e, got, err, kind, items)
		}
		items = append(items, got.item)
	}
	return items
}

// awaitConsumed waits until there are neither items nor locks.
func (m *meeting) awaitConsumed(at spot) {
	m.t.Helper()
	testenv.Eventually(m.t, func() bool {
		return len(m.nodes(at.items)) == 0 && (at.locks == "" || len(m.nodes(at.locks)) == 0)
	}, "all is consumed")
}

// forBothModes runs a story without locks of the items and with them.
func forBothModes(t *testing.T, story func(t *testing.T, locked bool)) {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	for name, locked := range map[string]bool{"at most once": false, "with locks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, locked)
		})
	}
}

// TestGoAndJavaConsumeEachOthersItems checks the order of each kind of queue between a producer and a consumer of
// different languages.
func TestGoAndJavaConsumeEachOthersItems(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	tests := []struct {
		kind queueKind
		puts []put
		want []string
	}{
		{plainQueue, []put{
			{Items: []string{"a"}}, {Items: []string{"b", "", "c"}}, {Items: []string{""}}, {Items: []string{"d"}},
		}, []string{"a", "b", "", "c", "", "d"}},
		{priorityQueue, []put{
			{Items: []string{"max"}, Priority: math.MaxInt32},
			{Items: []string{"10"}, Priority: 10},
			{Items: []string{"0"}},
			{Items: []string{"-10"}, Priority: -10},
			{Items: []string{"min"}, Priority: math.MinInt32},
			{Items: []string{"0a", "0b"}},
			{Items: []string{"-1"}, Priority: -1},
		}, []string{"min", "-10", "-1", "0", "0a", "0b", "10", "max"}},
		{delayQueue, []put{
			{Items: []string{"now"}, EpochMs: at(0)},
			{Items: []string{"long ago"}, EpochMs: 1_000_000_000_000},
			{Items: []string{"a minute ago", "too"}, EpochMs: at(-time.Minute)},
			{Items: []string{"1970"}, EpochMs: 1},
		}, []string{"1970", "long ago", "a minute ago", "too", "now"}},
		{idQueue, []put{
			{Items: []string{"z"}, ItemID: "z"},
			{Items: []string{"a/b|c"}, ItemID: "a/b|c"},
			{Items: []string{"7"}, ItemID: "7"},
			{Items: []string{"z again"}, ItemID: "z"},
			{Items: []string{"_"}, ItemID: "||"},
		}, []string{"z", "a/b|c", "7", "z again", "_"}},
	}
	forBothModes(t, func(t *testing.T, locked bool) {
		m := meet(t, 1)
		for _, tt := range tests {
			for i, s := range m.sides {
				at := newSpot(locked)
				m.put(m.openQueue(m.sides[1-i], queueUse{kind: tt.kind, at: at}), tt.puts...)
				taker := m.openQueue(s, queueUse{kind: tt.kind, at: at, consumes: true})
				if diff := cmp.Diff(tt.want, m.reports(taker, "item", len(tt.want))); diff != "" {
					t.Errorf("%s: %T consumes (-want +got):\n%s", tt.kind.theirs, s, diff)
				}
				m.awaitConsumed(at)
			}
		}
	})
}

// TestGoAndJavaWaitUntilItemsAreDue puts a future item into a queue that the other side already consumes.
func TestGoAndJavaWaitUntilItemsAreDue(t *testing.T) {
	forBothModes(t, func(t *testing.T, locked bool) {
		m := meet(t, 1)
		for i, s := range m.sides {
			at := newSpot(locked)
			taker := m.openQueue(s, queueUse{kind: delayQueue, at: at, consumes: true})
			due := time.Now().Add(300 * time.Millisecond)
			m.put(m.openQueue(m.sides[1-i], queueUse{kind: delayQueue, at: at}),
				put{Items: []string{"now"}, EpochMs: 1}, put{Items: []string{"soon"}, EpochMs: due.UnixMilli()})
			want := []string{"now", "soon"}
			if got := m.reports(taker, "item", 2); !slices.Equal(got, want) {
				t.Errorf("%T consumes %q, want %q", s, got, want)
			}
			if early := time.Until(due); early > time.Millisecond { // they count whole milliseconds
				t.Errorf("%T consumes %v too early", s, early)
			}
			m.awaitConsumed(at)
		}
	})
}
