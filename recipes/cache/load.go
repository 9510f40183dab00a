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

// Limits of the requests under way. A request is bounded by its number of reads and by the expected size of its
// answer, in bytes. A node whose size is not known yet is expected to have the mean size of the others.
const (
	maxBatches = 4
	maxReads   = 1000
	maxBytes   = 512 << 10
	firstMean  = 8 << 10
	overhead   = 128 // of one read: its Stat and the framing
	nameSize   = 24
)

// read is one read of a node.
type read struct {
	n *node
	w want
}

// isSingle reports whether r needs a request of its own: a multiRead has no exists.
func (r read) isSingle() bool { return r.w == check }

// load sends reads of the wanted nodes, up to the limits.
func (e *engine) load() {
	e.setUp()
	for e.flight != nil && !e.syncing && !e.paused && e.batches < maxBatches {
		reads := e.batch()
		if len(reads) == 0 {
			return
		}
		multi, single := reads, []read(nil)
		if e.oneShot {
			multi, single = nil, reads
		} else if slices.ContainsFunc(reads, read.isSingle) {
			single = slices.DeleteFunc(slices.Clone(reads), func(r read) bool { return !r.isSingle() })
			multi = slices.DeleteFunc(reads, read.isSingle)
		}
		if len(multi) > 0 {
			e.batches++
			e.readMulti(multi)
		}
		if len(single) > 0 {
			e.batches++
			e.readSingle(single)
		}
	}
}

// batch removes the reads of the next request from todo. A parent comes before its children.
func (e *engine) batch() []read {
	var reads []read
	size := 0
	for len(e.todo) > 0 && len(reads) < e.limit && size < maxBytes {
		n := e.todo[0]
		for _, w := range []want{check, data, list, exists} {
			if n.wanted&w != 0 && len(reads) < e.limit {
				reads = append(reads, read{n, w})
				size += e.expectedSize(n, w)
				n.wanted &^= w
				n.reading |= w
			}
		}
		if n.wanted == 0 {
			e.todo[0], e.todo = nil, e.todo[1:]
			n.queued = false
		}
	}
	if len(e.todo) == 0 {
		e.todo = nil // release an array that may be as large as the tree
	}
	slices.SortStableFunc(reads, func(a, b read) int { return cmp.Compare(len(a.n.path), len(b.n.path)) })
	return reads
}

// expectedSize returns the expected size of the answer to a read, in bytes.
func (e *engine) expectedSize(n *node, w want) int {
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

// readMulti sends one request for all reads.
func (e *engine) readMulti(reads []read) {
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
				e.requestFailed(flight, reads, ev.Err)
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

// requestFailed handles a request that failed as a whole.
func (e *engine) requestFailed(flight context.Context, reads []read, err error) {
	tooLarge := errors.Is(err, builders.ErrReplyTooLarge) || errors.Is(err, builders.ErrRequestTooLarge)
	switch {
	case errors.Is(err, framework.ErrUnimplemented):
		e.watchAnswered(flight, err)
	case tooLarge && len(reads) > 1:
		e.limit = max(1, len(reads)/2)
	case isTransient(err):
		e.interrupted(flight, err)
	default:
		for _, r := range reads {
			e.apply(flight, r, callbacks.ReadResult{Err: err})
		}
		return
	}
	e.putBack(reads)
}

// putBack makes reads wanted again that were not answered.
func (e *engine) putBack(reads []read) {
	for _, r := range reads {
		if !r.n.gone {
			e.want(r.n, r.w, r.n.generation)
			e.finishRead(r.n, r.w)
		}
	}
}

// isTransient reports whether err says nothing about the node: an outage, a closed client or too many pending
// operations.
func isTransient(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrTooManyPending)
}

// readSingle sends a request for each read. With one-shot watches each of them sets a watch.
func (e *engine) readSingle(reads []read) {
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
				if isTransient(res.Err) {
					e.interrupted(flight, res.Err)
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

// readOne returns the operation of a read.
func (e *engine) readOne(r read, answered callbacks.BackgroundCallback) builders.Background {
	switch r.w {
	case list:
		return e.client.GetChildren().UsingWatcher(e.watcher).InBackground(answered)
	case exists:
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
