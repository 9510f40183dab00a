package callbacks

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/trace"
)

// Watcher gets the events of the watches that it is set with. Its identity is its address: if it is set twice for the
// same node and kind of watch it gets each event once, and RemoveWatches finds it by its address. A one-shot watch ends
// with its event; a persistent one does not.
//
// A Watcher also gets events of type [zk.EventSession]: zk.StateDisconnected when the connection is lost and
// zk.StateHasSession when it is back, which end no watch, and zk.StateExpired when the session has ended, which ends
// all its watches. [zk.EventNotWatching] means that watches of the path have ended without the session: they were
// removed with RemoveAll of package builders, or the servers were replaced by older ones, which have no persistent
// watches. Then its Err is framework.ErrUnimplemented. In Java: Watcher and CuratorWatcher. There a removal of one
// watcher has an event too.
type Watcher struct {
	fn      func(ctx context.Context, ev zk.Event)
	ch      chan<- zk.Event
	inPlace func(ev zk.Event)

	library atomic.Bool // it is the library's own: see hook.ForLibrary

	closed atomic.Bool // ch is
	setIn  atomic.Pointer[trace.SpanContext]
}

// NewWatcher returns a Watcher that calls fn on the dispatcher of the client. Nothing ends the context of fn.
func NewWatcher(fn func(ctx context.Context, ev zk.Event)) *Watcher { return &Watcher{fn: fn} }

// NewChanWatcher returns a Watcher that sends its events to ch, past the dispatcher. It never blocks: it drops an event
// if ch is full. With room for one event, ch never misses that an event has come since it was last emptied, which is
// enough for a loop that reads the state again each time. Remove the watcher before you close ch. Otherwise the
// unhandled-error listeners of the client get one report, and further events are dropped.
func NewChanWatcher(ch chan<- zk.Event) *Watcher { return &Watcher{ch: ch} }

// deliver passes ev to w: to its channel at once, to its function through dispatch.
func (w *Watcher) deliver(ev zk.Event, dispatch func(run func(ctx context.Context))) {
	switch {
	case w.inPlace != nil:
		w.inPlace(ev)
		return
	case w.ch == nil:
		dispatch(func(ctx context.Context) { w.fn(ctx, ev) })
		return
	}
	if w.closed.Load() || w.send(ev) {
		return
	}
	if w.closed.CompareAndSwap(false, true) { // the panic is reported and ends nothing
		dispatch(func(context.Context) { panic("the channel is closed") })
	}
}

// send reports whether the channel is open. It does not block.
func (w *Watcher) send(ev zk.Event) (open bool) {
	defer func() {
		if !open {
			_ = recover() // nothing else in a send panics
		}
	}()
	select {
	case w.ch <- ev:
	default:
	}
	return true
}

// noteSpan records the span in which w was set last.
func (w *Watcher) noteSpan(span trace.SpanContext) { w.setIn.Store(&span) }

// lastSpan returns the span in which w was set last, if that was recorded.
func (w *Watcher) lastSpan() (span trace.SpanContext) {
	if at := w.setIn.Load(); at != nil {
		span = *at
	}
	return span
}
