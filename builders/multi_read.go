package builders

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// MultiRead builds a read of many nodes with one request; it is a value like [Create]. The server must be 3.6 or newer.
// Java Curator has no such operation.
type MultiRead struct {
	env        *environment
	decompress option
}

// Read is one of the reads of a [MultiRead].
type Read struct {
	Path string
	// Children reads the names of the children instead of the data.
	Children bool
}

// Decompressed works as in [GetData].
func (m MultiRead) Decompressed() MultiRead { m.decompress = on; return m }

// Undecompressed works as in [GetData].
func (m MultiRead) Undecompressed() MultiRead { m.decompress = off; return m }

// InBackground makes ForReads asynchronous: it returns once the operation is queued, and cb receives the results, or
// the client's listeners if cb is nil.
func (m MultiRead) InBackground(cb callbacks.BackgroundCallback) BackgroundMultiRead {
	return BackgroundMultiRead{background{cb: cb}, m.start}
}

// ForReads returns the results of reads in their order. A read that fails does not fail the others: its error is in its
// result. The returned error is that of the request: a server that does not support it, an answer that is too large,
// and, when the retry policy has given up, connection loss.
func (m MultiRead) ForReads(ctx context.Context, reads ...Read) ([]callbacks.ReadResult, error) {
	o, err := m.operation(reads)
	if err != nil {
		return nil, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	return o.results(), nil
}

func (m MultiRead) start(ctx context.Context, reads []Read, b background) error {
	o, err := m.operation(reads)
	if err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (m MultiRead) operation(reads []Read) (*multiReadOp, error) {
	o := &multiReadOp{b: m, reads: clone(reads)}
	o.env, o.typ, o.verb = m.env, callbacks.MultiRead, "multiRead"
	if len(reads) == 0 {
		return nil, o.badArguments("no reads")
	}
	o.given = reads[0].Path
	o.requests = make([]jute.Request, len(reads))
	for i, r := range reads {
		if err := zkpath.Validate(r.Path, false); err != nil {
			return nil, &OpError{Op: r.verb(), Path: r.Path, Err: err}
		}
		o.requests[i] = jute.Request{Op: jute.OpGetData, Path: m.env.namespace.full(r.Path)}
		if r.Children {
			o.requests[i].Op = jute.OpGetChildren
		}
	}
	return o, nil
}

// verb is ZooKeeper's word for the read.
func (r Read) verb() string {
	if r.Children {
		return "getChildren"
	}
	return "getData"
}

// multiReadOp is the protocol of a multiRead.
type multiReadOp struct {
	call
	b        MultiRead
	reads    []Read
	requests []jute.Request
}

// Describe adds the number of reads.
func (o *multiReadOp) Describe() telemetry.Operation {
	what := o.call.Describe()
	what.Batch = len(o.reads)
	return what
}

// Begin sends the request.
func (o *multiReadOp) Begin() {
	o.send(jute.Request{Op: jute.OpMultiRead, Ops: o.requests}, o.answered)
}

func (o *multiReadOp) answered() {
	err := o.op.Err()
	if err == nil && len(o.op.Reply().Results) != len(o.reads) { // the server has answered another request
		err = jute.ErrMarshalling
	}
	o.op.Finish(err)
}

// results pairs the reads with their answers. It runs the program's code, so it does not run on the goroutine that
// reads the connection.
func (o *multiReadOp) results() []callbacks.ReadResult {
	out := make([]callbacks.ReadResult, len(o.reads))
	for i := range o.op.Reply().Results {
		r, answer := &out[i], &o.op.Reply().Results[i]
		r.Path = o.reads[i].Path
		switch {
		case answer.Op == jute.OpError:
			r.Err = answer.Code.Err()
		case o.reads[i].Children:
			r.Children = answer.Children
		default:
			r.Stat = answer.Stat
			r.Data, r.Err = o.env.unpacked(r.Path, answer.Data, o.b.decompress)
		}
		if r.Err != nil {
			r.Err = &OpError{Op: o.reads[i].verb(), Path: r.Path, Attempts: o.op.Attempts(), Err: r.Err}
		}
	}
	return out
}

// Deliver hands the result to the callbacks.
func (o *multiReadOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		ev.Reads = o.results()
	}
	o.deliver(ev)
}

// BackgroundMultiRead is a [Background] for a [MultiRead].
type BackgroundMultiRead struct {
	background
	start func(ctx context.Context, reads []Read, b background) error
}

// WithUnhandledErrorListener works as in [Background].
func (b BackgroundMultiRead) WithUnhandledErrorListener(fn func(message string, err error)) BackgroundMultiRead {
	b.onError = fn
	return b
}

// ForReads submits the reads as [Background.ForPath] does.
func (b BackgroundMultiRead) ForReads(ctx context.Context, reads ...Read) error {
	return b.start(ctx, reads, b.background)
}
