package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
)

// Limits of the requests under way. A request is bounded by its number of reads and by the expected size of its
// answer, in bytes. A node whose size is not known yet is expected to have the mean size of the others.
const (
	maxBatches = 4
	maxReads   = 1000
	maxBytes   = 512 << 10
	firstMean  = 8 << 10
	overhead   = 128 // bytes of one read for its Stat and the framing
	nameSize   = 24
)

// read is one read of a node.
type read struct {
	n       *node
	w       want
	epoch   *epoch
	request uint32 // the number of its request
}

// load sends reads of the wanted nodes, up to the limits.
func (e *engine) load() {
	e.setUp()
	for e.flight != nil && !e.syncing && !e.paused && e.batches < maxBatches {
		batch := e.batch()
		if len(batch) == 0 {
			return
		}
		e.send(batch)
	}
}

// batch removes the reads of the next request from todo. A parent comes before its children.
func (e *engine) batch() []read {
	var reads []read
	size := 0
	e.requests++
	for len(e.todo) > 0 && len(reads) < e.limit && size < maxBytes {
		n := e.todo[0]
		if n.wanted != 0 {
			w := n.wanted & -n.wanted // the first one
			reads = append(reads, read{n, w, n.epoch, e.requests})
			size += e.expectedSize(n, w)
			n.epoch.pending++
			if w.isOfNode() {
				n.underWay++
			}
			if n.wanted &^= w; n.wanted != 0 {
				continue
			}
			n.epoch.pending--
		}
		e.todo[0], e.todo = nil, e.todo[1:]
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
	case w == check, w == chroot:
		return overhead
	case n.czxid == 0:
		return overhead + e.meanSize
	}
	return overhead + int(n.size)
}

// answer handles the answer to a request for some reads.
type answer func(reads []read, results []callbacks.ReadResult, err error)

// send sends one request for all reads of a batch, except those that need a request of their own: a multiRead sets no
// one-shot watch, and has no exists.
func (e *engine) send(batch []read) {
	flight, left := e.flight, len(batch)
	e.batches++
	answered := func(reads []read, results []callbacks.ReadResult, err error) {
		if left -= len(reads); left == 0 {
			e.batches--
		}
		if err != nil {
			e.requestFailed(flight, reads, err)
			return
		}
		e.limit = min(2*e.limit, maxReads)
		for i, r := range reads {
			e.apply(flight, r, results[i])
		}
	}
	isSingle := func(r read) bool { return e.oneShot || e.single || r.w == check || r.w == chroot }
	if multi := slices.DeleteFunc(slices.Clone(batch), isSingle); len(multi) > 0 {
		e.readMulti(multi, answered)
	}
	for _, r := range batch {
		if isSingle(r) {
			e.readSingle(r, answered)
		}
	}
}

// readMulti sends one request for all reads.
func (e *engine) readMulti(reads []read, answered answer) {
	requests := make([]builders.Read, len(reads))
	for i, r := range reads {
		requests[i] = builders.Read{Path: r.n.path, Children: r.w == list}
	}
	callback := func(_ context.Context, ev callbacks.Event) {
		e.decode(reads, ev.Reads, func() { answered(reads, ev.Reads, ev.Err) })
	}
	err := e.client.MultiRead().Undecompressed().InBackground(callback).WithUnhandledErrorListener(ignoreError).
		ForReads(e.flight, requests...)
	if err != nil {
		callback(e.flight, callbacks.Event{Err: err})
	}
}

// readSingle sends a request for one read. With one-shot watches it sets a watch.
func (e *engine) readSingle(r read, answered answer) {
	path := r.n.path
	if r.w == chroot {
		path = "/"
	}
	e.request(e.operation(r.w), path, func(ev callbacks.Event) {
		reads := []read{r}
		if isTransient(ev.Err) {
			e.post(func() { answered(reads, nil, ev.Err) })
			return
		}
		results := []callbacks.ReadResult{{Data: ev.Data, Children: ev.Children, Err: ev.Err}}
		if ev.Stat != nil {
			results[0].Stat = *ev.Stat
		} else if ev.Err == nil {
			results[0].Err = zk.ErrNoNode // the answer of an exists is not an error
		}
		e.decode(reads, results, func() { answered(reads, results, nil) })
	})
}

// decode decompresses what was read, if the cache does so, and posts then. The answers stay in order. The compression
// is code of the program, which may block, so it has a goroutine of its own.
func (e *engine) decode(reads []read, results []callbacks.ReadResult, then func()) {
	if !e.settings.compressed {
		e.post(then)
		return
	}
	for i := range results {
		if res := &results[i]; reads[i].w == data && res.Err == nil {
			e.decoding.Do(func() { e.decompress(reads[i].n.path, res) })
		}
	}
	e.decoding.Do(func() { e.post(then) })
}

func (e *engine) decompress(path string, res *callbacks.ReadResult) {
	if e.ctx.Err() != nil {
		return
	}
	stored := res.Data
	res.Err = usercode.Exited("the compression") // unless it returns
	res.Data, res.Err = hook.Decompress(e.client, path, stored, true)
	if res.Err != nil {
		res.Data, res.Err = stored, &builders.OpError{Op: "getData", Path: path, Attempts: 1, Err: res.Err}
	}
}

// operation returns the operation of a single read.
func (e *engine) operation(w want) operation {
	switch {
	case w == list && e.oneShot:
		return e.client.GetChildren().UsingWatcher(e.watcher)
	case w == list:
		return e.client.GetChildren()
	case w == chroot:
		return waitqueue.FindChroot(e.client)
	case w == check && e.oneShot:
		return e.client.CheckExists().UsingWatcher(e.watcher)
	case w == check:
		return e.client.CheckExists()
	}
	get := e.client.GetData().Undecompressed()
	if e.oneShot {
		get = get.UsingWatcher(e.watcher)
	}
	return get
}

// requestFailed handles a request that failed as a whole.
func (e *engine) requestFailed(flight context.Context, reads []read, err error) {
	tooLarge := errors.Is(err, builders.ErrReplyTooLarge) || errors.Is(err, builders.ErrRequestTooLarge)
	switch {
	case tooLarge && len(reads) > 1:
		e.limit = max(1, len(reads)/2)
	case flight != e.flight:
	case isTransient(err):
		e.interrupted(err)
	case errors.Is(err, framework.ErrUnimplemented): // a server without multiRead
		e.single = true
	default:
		for _, r := range reads {
			e.apply(flight, r, callbacks.ReadResult{Err: err})
		}
		return
	}
	for _, r := range reads {
		e.putBack(r)
	}
}

// putBack makes a read wanted again that was not answered.
func (e *engine) putBack(r read) {
	if n := r.n; !n.gone {
		if r.w.isOfNode() {
			n.underWay--
		}
		e.want(n, r.w, r.epoch)
	}
	r.epoch.pending--
}

// isTransient reports whether err says nothing about the node: an outage, a closed client or too many pending
// operations.
func isTransient(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrTooManyPending)
}
