package builders

import (
	"bytes"
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// SetData builds a setData; it is a value like [Create]. In Java: SetDataBuilder.
type SetData struct {
	env        *environment
	version    int32
	compress   option
	idempotent bool
}

// WithVersion sets the expected version of the node. ForPath fails with zk.ErrBadVersion on another one. -1, the
// default, is any.
func (s SetData) WithVersion(version int32) SetData { s.version = version; return s }

// Compressed compresses the data with the client's [CompressionProvider].
func (s SetData) Compressed() SetData { s.compress = on; return s }

// Uncompressed writes the data unchanged, whatever the client's default.
func (s SetData) Uncompressed() SetData { s.compress = off; return s }

// Idempotent makes a retry after a lost answer succeed if the node has the next version with the same data: that is how
// the lost try leaves it. Another client that has written the same data to the same version leaves it so, too: data
// that only this call writes, with an id for example, excludes that. In Java: idempotent, which also succeeds without a
// lost answer.
func (s SetData) Idempotent() SetData { s.idempotent = true; return s }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (s SetData) InBackground(cb callbacks.BackgroundCallback) BackgroundData {
	return BackgroundData{background{cb: cb}, s.start}
}

// ForPath sets the data of the node and returns its new Stat. data nil stands for the default data of the client, an
// empty slice for no data. When ctx ends first, the error is that of ctx, with [ErrUncertain] if the data may be set.
// Other errors: zk.ErrNoNode, zk.ErrBadVersion, zk.ErrNoAuth, and, when the retry policy has given up, connection loss.
// With a version, a retry after a lost answer does not write to a node that is newer than all that the client had seen
// of the server before: the error is [ErrUncertain], because the lost try may have written to the node before it.
func (s SetData) ForPath(ctx context.Context, path string, data []byte) (*zk.Stat, error) {
	if s.idempotent { // it may compare data when ctx has ended
		data = clone(data)
	}
	o := recycled[setDataOp](&setDataOps)
	if err := o.prepare(s, path, data); err != nil {
		return nil, err
	}
	return perform(ctx, &o.call, o)
}

func (s SetData) start(ctx context.Context, path string, data []byte, b background) error {
	o := recycled[setDataOp](&setDataOps)
	data, o.own = jute.CopyBeside(data)
	if err := o.prepare(s, path, data); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (o *setDataOp) prepare(s SetData, path string, data []byte) error {
	o.b = s
	if err := o.init(s.env, callbacks.SetData, "setData", path, false); err != nil {
		return err
	}
	var err error
	if o.data, err = s.env.data(path, data, s.compress); err != nil {
		return o.wrap(err)
	}
	return nil
}

// setDataOp is the protocol of a setData.
type setDataOp struct {
	call
	b    SetData
	data []byte
}

var setDataOps sync.Pool

// Recycle returns its memory to the pool.
func (o *setDataOp) Recycle() { recycle(&setDataOps, o) }

// Begin sets the data. After a try with a lost answer it looks first whether a node with a version is the same one.
func (o *setDataOp) Begin() {
	if o.b.version != -1 && o.op.Attempts() > 1 {
		o.unlessNewer(o.set, o.full)
		return
	}
	o.set()
}

// HasSteps reports whether an attempt after a lost answer may have several requests.
func (o *setDataOp) HasSteps() bool { return o.b.idempotent || o.b.version != -1 }

func (o *setDataOp) set() {
	repeatable := o.b.version == -1 || o.b.idempotent
	o.write(jute.Request{Op: jute.OpSetData, Path: o.full, Data: o.data, Version: o.b.version}, repeatable, nil)
}

// Replied handles the answer to the setData.
func (o *setDataOp) Replied() {
	if _, lost := o.op.LostAnswer(); lost && o.op.Err() == zk.ErrBadVersion && o.b.idempotent {
		o.compare()
		return
	}
	o.op.Finish(o.op.Err())
}

// compare succeeds if the node has the data and version that the setData leaves, written after its first try.
func (o *setDataOp) compare() {
	o.send(jute.Request{Op: jute.OpGetData, Path: o.full}, func() {
		err, stat := o.op.Err(), &o.op.Reply().Stat
		known, _ := o.op.LostAnswer()
		ours := stat.Mzxid > known && stat.Version == o.b.version+1 && bytes.Equal(o.op.Reply().Data, o.data)
		if err == nil && !ours {
			err = zk.ErrBadVersion
		}
		o.op.Finish(err)
	})
}

func (o *setDataOp) result() (*zk.Stat, error) { return o.statCopy(), nil }

// Deliver hands the result to the callback.
func (o *setDataOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		ev.Data, ev.Stat = o.data, o.statCopy()
	}
	o.deliver(ev)
}
