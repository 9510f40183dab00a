package shared

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

// Value is a value of a type of the program in a node. It has no copy in memory and nothing to start or close: each
// method asks the server, and [Value.Watch] follows the node while the program iterates. With the client of a hold, as
// locks.Hold.Client returns it, its writes take effect only while the lock is held. All methods are safe for concurrent
// use. In Java: ModeledFramework.
type Value[T any] struct {
	node
	codec codec.Codec[T]
}

// NewValue returns the value of the node at path. It does no I/O. If path is invalid, each method returns an error.
func NewValue[T any](client *framework.Client, path string, values codec.Codec[T], opts ...Option) *Value[T] {
	v := &Value[T]{codec: values}
	v.init(client, "value", path, opts)
	v.obs.Started(context.Background()) //nolint:forbidigo // it begins the counters
	return v
}

// Get returns the value and the Stat of its node. ctx bounds the wait. The error is zk.ErrNoNode if there is no node,
// or says why the data does not decode; then there is a Stat too.
func (v *Value[T]) Get(ctx context.Context) (value T, stat *zk.Stat, err error) {
	r, err := v.read(ctx)
	if err == nil {
		stat = &r.stat
		value, err = v.decode(r.data)
	}
	return value, stat, v.wrap(err, "get")
}

// Set sets the value, whatever it is, and returns the new Stat of the node. It creates a missing node, and its parents
// as containers. ctx bounds the wait. With [ErrUncertain] the value may be set.
func (v *Value[T]) Set(ctx context.Context, value T) (*zk.Stat, error) {
	data, err := v.encode(value)
	var r revision
	if err == nil {
		r, err = v.createOrSet(ctx, data)
	}
	if err != nil {
		return nil, v.wrap(err, "set")
	}
	return &r.stat, nil
}

// Modify changes the value by a function and returns the new one. change gets the value that is there, or the zero
// value if there is no node, which Modify then creates. If another client writes in between, change is called again.
// Its error ends Modify and is returned. Modify never applies a change twice: if the answer was lost and nobody can
// know whether the change was applied, the error is [ErrUncertain]. ctx bounds the wait; change gets it too.
func (v *Value[T]) Modify(ctx context.Context, change func(ctx context.Context, value T) (T, error)) (T, error) {
	value, err := v.modify(ctx, change)
	return value, v.wrap(err, "modify")
}

func (v *Value[T]) modify(ctx context.Context, change func(ctx context.Context, value T) (T, error)) (T, error) {
	var zero T
	var r revision // has no Stat before it is read
	for {
		err := error(nil)
		if r.stat.Czxid == 0 {
			r, err = v.read(ctx)
		}
		absent, value := errors.Is(err, zk.ErrNoNode), zero
		if err == nil {
			value, err = v.decode(r.data)
		}
		if err != nil && !absent {
			return zero, err
		}
		value, err = safely("the function that modifies", func() (T, error) { return change(ctx, value) })
		if err != nil {
			return zero, err
		}
		data, err := v.encode(value)
		if err != nil {
			return zero, err
		}
		done := false
		if absent {
			r, done, err = v.compareAndCreate(ctx, data)
		} else {
			r, done, err = v.compareAndSet(ctx, r.stat, data)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode) && !errors.Is(err, framework.ErrNoChroot) && !isLost(err): // deleted in between
			r = revision{}
		case err != nil:
			return zero, err
		case done:
			return value, nil
		}
	}
}

// Watch returns an iterator over the value and each later one. The first comes at once, or when there is a connection.
// Of several changes in short time it may yield the last one only. The error is zk.ErrNoNode while there is no node, or
// framework.ErrNoChroot if there is no chroot at the start; it says why data does not decode, or why the node cannot be
// read at the start. The iterator goes on after it. It ends with ctx, and with the loop; then it follows the node no
// longer. If ctx ends before there was a connection, the last error is that of ctx with the reason.
func (v *Value[T]) Watch(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		c := cache.NewCuratorCache(v.client, v.path, cache.WithSingleNode(), cache.WithName(v.name))
		defer c.Close() //nolint:errcheck // always nil
		open, end := v.untilClosed(ctx)
		defer end()
		err := zkpath.Validate(v.path, false)
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			yield(zero, v.wrap(err, "watch"))
			return
		}
		exists, yielded := false, false
		if err := c.Ready(open); errors.Is(err, framework.ErrNoChroot) {
			yielded = true
			if !yield(zero, v.wrap(err, "watch")) {
				return
			}
		}
		for ev := range c.Changes(open) {
			value, err := zero, error(nil)
			switch {
			case ev.Type == cache.Initialized && exists:
				continue // it was yielded
			case ev.Type == cache.Initialized:
				err = c.Err(v.path)
			case ev.New != nil:
				exists = true
				value, err = v.decode(ev.New.Data)
			}
			if ev.New == nil && err == nil {
				err = zk.ErrNoNode
			}
			yielded = true
			if !yield(value, v.wrap(err, "watch")) {
				return
			}
		}
		switch {
		case ctx.Err() == nil:
			yield(zero, v.wrap(framework.ErrClosed, "watch"))
		case !yielded && !v.client.IsConnected(): // the program has got no value
			yield(zero, v.wrap(hook.EndOf(ctx, v.client), "watch"))
		}
	}
}

// Op returns an operation that sets the value in a transaction, beside other operations or the fence of a lock. version
// is that of the Stat of the value that it replaces, or -1 for any. The node has to exist.
func (v *Value[T]) Op(value T, version int32) (builders.TransactionOperation, error) {
	err := zkpath.Validate(v.path, false)
	if err != nil {
		return builders.TransactionOperation{}, v.wrap(err, "op")
	}
	data, err := v.encode(value)
	op := v.client.TransactionOp().SetData().WithVersion(version).Uncompressed().ForPath(v.path, data)
	return op, v.wrap(err, "encode")
}

func (v *Value[T]) encode(value T) ([]byte, error) {
	data, err := safely("the codec", func() ([]byte, error) { return v.codec.Encode(value) })
	return ownedBytes(data), err
}

func (v *Value[T]) decode(data []byte) (T, error) {
	value, err := safely("the codec", func() (T, error) { return v.codec.Decode(data) })
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// safely calls code of the program and returns a panic as an error.
func safely[T any](where string, fn func() (T, error)) (value T, err error) {
	defer usercode.Catch(where, &err)
	return fn()
}
