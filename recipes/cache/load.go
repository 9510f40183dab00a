package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// What is on its way is bounded: a request by the number of its reads and the size that its answer is expected to have,
// and the number of requests. A node whose size is not known yet counts as one of the others.
const (
	maxBatches = 4
	maxReads   = 1000
	maxBytes   = 512 << 10
	firstMean  = 8 << 10
	overhead   = 128 // of one read: its Stat and what stands around it
	nameSize   = 24
)

// read is one read of a node.
type read struct {
	n *node
	w want
}

// isAlone reports whether r cannot be part of a multiRead.
func (r read) isAlone() bool { return r.w == check }

// load sends reads of what is wanted.
func (e *engine) load() {
	e.greet()
	for e.flight != nil && e.batches < maxBatches {
		reads := e.batch()
		if len(reads) == 0 {
			return
		}
		together, each := reads, []read(nil)
		if e.oneShot {
			together, each = nil, reads
		} else if slices.ContainsFunc(reads, read.isAlone) {
			each = slices.DeleteFunc(slices.Clone(reads), func(r read) bool { return !r.isAlone() })
			together = slices.DeleteFunc(reads, read.isAlone)
		}
		if len(together) > 0 {
			e.batches++
			e.readTogether(together)
		}
		if len(each) > 0 {
			e.batches++
			e.readEach(each)
		}
	}
}

// batch takes the reads of the next request. A node stands before those below it.
func (e *engine) batch() []read {
	var reads []read
	size := 0
	for len(e.todo) > 0 && len(reads) < e.limit && size < maxBytes {
		n := e.todo[0]
		e.todo[0], e.todo = nil, e.todo[1:]
		n.queued = false
		for _, w := range []want{check, data, list, birth} {
			if n.wanted&w != 0 {
				reads = append(reads, read{n, w})
				size += e.expected(n, w)
			}
		}
		n.flying |= n.wanted
		n.wanted = 0
	}
	if len(e.todo) == 0 {
		e.todo = nil // it may be as long as the tree is large
	}
	slices.SortStableFunc(reads, func(a, b read) int { return cmp.Compare(len(a.n.path), len(b.n.path)) })
	return reads
}

// expected returns how many bytes of an answer a read is.
func (e *engine) expected(n *node, w want) int {
	switch {
	case w == list:
		return overhead + int(n.children)*nameSize
	case w == check:
		return overhead
	case n.czxid == 0:
		return overhead + e.meanSize
	}
	return overhead + int(n.size)
}

// readTogether sends one request for all reads.
func (e *engine) readTogether(reads []read) {
	flight := e.flight
	requests := make([]builders.Read, len(reads))
	for i, r := range reads {
		requests[i] = builders.Read{Path: r.n.path, Children: r.w == list}
	}
	b := e.client.MultiRead().Undecompressed()
	if e.settings.compressed {
		b = b.Decompressed()
	}
	answered := func(_ context.Context, ev callbacks.Event) {
		e.inbox.put(func() {
			e.batches--
			if ev.Err != nil {
				e.refused(flight, reads, ev.Err)
				return
			}
			e.limit = min(2*e.limit, maxReads)
			for i, r := range reads {
				e.apply(flight, r, ev.Reads[i])
			}
		})
	}
	err := b.InBackground(answered).WithUnhandledErrorListener(ignoreError).ForReads(flight, requests...)
	if err != nil {
		answered(flight, callbacks.Event{Err: err})
	}
}

// refused takes a request that failed as a whole.
func (e *engine) refused(flight context.Context, reads []read, err error) {
	tooLarge := errors.Is(err, builders.ErrReplyTooLarge) || errors.Is(err, builders.ErrRequestTooLarge)
	switch {
	case errors.Is(err, framework.ErrUnimplemented):
		e.watchAnswered(flight, err)
	case tooLarge && len(reads) > 1:
		e.limit = max(1, len(reads)/2)
	case isPassing(err):
		e.disconnected(flight)
	default:
		for _, r := range reads {
			e.apply(flight, r, callbacks.ReadResult{Err: err})
		}
		return
	}
	e.putBack(reads)
}

// putBack wants reads again that were not answered.
func (e *engine) putBack(reads []read) {
	for _, r := range reads {
		if !r.n.gone {
			e.want(r.n, r.w, r.n.generation)
			e.landed(r.n, r.w)
		}
	}
}

// isPassing reports whether err says nothing about the node.
func isPassing(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrTooManyPending)
}

// readEach sends a request for each read. With one-shot watches it sets one.
func (e *engine) readEach(reads []read) {
	flight, left := e.flight, len(reads)
	for _, r := range reads {
		answered := func(_ context.Context, ev callbacks.Event) {
			res := callbacks.ReadResult{Path: r.n.path, Data: ev.Data, Children: ev.Children, Err: ev.Err}
			if ev.Stat != nil {
				res.Stat = *ev.Stat
			}
			e.inbox.put(func() {
				if left--; left == 0 {
					e.batches--
				}
				if isPassing(res.Err) {
					e.disconnected(flight)
					e.putBack([]read{r})
					return
				}
				e.apply(flight, r, res)
			})
		}
		if err := e.readOne(r, answered).WithUnhandledErrorListener(ignoreError).ForPath(flight, r.n.path); err != nil {
			answered(flight, callbacks.Event{Err: err})
		}
	}
}

func (e *engine) readOne(r read, answered callbacks.BackgroundCallback) builders.Background {
	switch r.w {
	case list:
		return e.client.GetChildren().UsingWatcher(e.watcher).InBackground(answered)
	case birth:
		return e.client.CheckExists().UsingWatcher(e.watcher).InBackground(answered)
	case check:
		return e.client.CheckExists().InBackground(answered)
	}
	get := e.client.GetData().Undecompressed().UsingWatcher(e.watcher)
	if e.settings.compressed {
		get = get.Decompressed()
	}
	return get.InBackground(answered)
}
