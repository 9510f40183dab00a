package builders

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// GetData builds a getData; it is a value like [Create]. In Java: GetDataBuilder.
type GetData struct {
	env        *environment
	decompress option
	stat       *zk.Stat
	watcher    *callbacks.Watcher
}

// Decompressed decompresses the data with the client's [CompressionProvider].
func (g GetData) Decompressed() GetData { g.decompress = on; return g }

// Undecompressed returns the stored bytes, whatever the client's default.
func (g GetData) Undecompressed() GetData { g.decompress = off; return g }

// StoringStatIn stores the Stat of the node in stat before ForPath returns, or in the background before
// the callback is called.
func (g GetData) StoringStatIn(stat *zk.Stat) GetData { g.stat = stat; return g }

// UsingWatcher sets a watch for the node's data and deletion. It sets none on a node that does not exist.
func (g GetData) UsingWatcher(w *callbacks.Watcher) GetData { g.watcher = w; return g }

// Watched sets a watch whose event goes to the listeners of the client.
func (g GetData) Watched() GetData { return g.UsingWatcher(g.env.DefaultWatcher) }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (g GetData) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, g.start}
}

// ForPath returns the data of the node. If the data does not decompress, it returns the stored bytes with the error.
// Other errors: zk.ErrNoNode, zk.ErrNoAuth, and, when the retry policy has given up, connection loss.
func (g GetData) ForPath(ctx context.Context, path string) ([]byte, error) {
	o := recycled[getDataOp](&getDataOps)
	o.b = g
	if err := o.init(g.env, callbacks.GetData, "getData", path, false); err != nil {
		return nil, err
	}
	return perform(ctx, &o.call, o)
}

// Submit submits the getData and does not wait: see [Create.Submit].
func (g GetData) Submit(ctx context.Context, path string) Future[[]byte] {
	o := &getDataOp{b: g}
	if err := o.init(g.env, callbacks.GetData, "getData", path, false); err != nil {
		return Future[[]byte]{err: err}
	}
	return submit(ctx, &o.call, o, o.result)
}

func (o *getDataOp) result() ([]byte, error) {
	o.store()
	var err error
	o.data, err = o.env.unpacked(o.given, o.data, o.b.decompress)
	return o.data, o.wrap(err)
}

func (g GetData) start(ctx context.Context, path string, b background) error {
	o := recycled[getDataOp](&getDataOps)
	o.b = g
	if err := o.init(g.env, callbacks.GetData, "getData", path, false); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// getDataOp is the protocol of a getData.
type getDataOp struct {
	call
	b    GetData
	data []byte
}

var getDataOps sync.Pool

// Recycle returns its memory to the pool.
func (o *getDataOp) Recycle() { recycle(&getDataOps, o) }

// Begin sends the request.
func (o *getDataOp) Begin() {
	r := jute.Request{Op: jute.OpGetData, Path: o.full, OwnStat: o.op.Background()}
	o.sendWatching(r, o.b.watcher, nil)
}

// Replied handles the answer.
func (o *getDataOp) Replied() {
	err := o.op.Err()
	if err == nil {
		o.watched(o.b.watcher, false)
		o.data, o.own = o.op.Reply().Data, o.op.Reply().OwnStat
	}
	o.op.Finish(err)
}

// unpack decompresses. It does not run on the goroutine that reads the connection.
func (o *getDataOp) unpack() error {
	if !o.isPacked() {
		return nil
	}
	data, err := o.env.Compression.Decompress(o.given, o.data)
	if err == nil {
		o.data = data
	}
	return err
}

func (o *getDataOp) isPacked() bool { return o.b.decompress.or(o.env.CompressAll) }

// unpackGuarded is unpack on the dispatcher, which must survive a panic of the user's code.
func (o *getDataOp) unpackGuarded() error {
	err := errPanicked // unless unpack returns
	o.guard(func() { err = o.unpack() })
	return err
}

var errPanicked = errors.New("curator: panic in the compression provider")

func (o *getDataOp) store() {
	if o.b.stat != nil {
		*o.b.stat = o.op.Reply().Stat
	}
}

// Deliver hands the result to the callback. If the data does not decompress, it delivers the stored bytes with the
// error.
func (o *getDataOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		o.store()
		if o.isPacked() {
			ev.Err = o.unpackGuarded()
		}
		ev.Data, ev.Stat = o.data, o.statCopy()
	}
	o.deliver(ev)
}
