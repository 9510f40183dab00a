package atomic

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/retry"
)

// DistributedAtomicValue is bytes that processes change one after the other. All methods are safe for concurrent use.
// In Java: DistributedAtomicValue.
type DistributedAtomicValue struct{ engine *engine }

// NewDistributedAtomicValue returns the value of a path. policy decides how often, and with which pauses, a change is
// tried again that others have overtaken; a lost connection is for the policy of the client. It does no I/O. The first
// change creates the node, with its parents as containers. Every method returns an error if the path or the policy is
// invalid.
func NewDistributedAtomicValue(
	client *framework.Client, path string, policy retry.Policy, opts ...Option,
) *DistributedAtomicValue {
	return &DistributedAtomicValue{newEngine(client, "atomic_value", path, policy, opts)}
}

// Get returns the data of the node, nil if it does not exist. In Java: get.
func (v *DistributedAtomicValue) Get(ctx context.Context) ([]byte, error) { return v.engine.get(ctx) }

// CompareAndSet sets the value if it is expected. The result has Succeeded false if it is another one, and if there is
// none: see Initialize. It fails with [ErrUncertain] if nobody can know whether it was set. In Java: compareAndSet,
// which also returns false if the value was set and the answer was lost.
func (v *DistributedAtomicValue) CompareAndSet(ctx context.Context, expected, value []byte) (Result[[]byte], error) {
	expected, value = bytes.Clone(expected), clone(value)
	return v.do(ctx, "compare and set", false, func(pre []byte) ([]byte, error) {
		if pre == nil || !bytes.Equal(pre, expected) {
			return nil, errDiffers
		}
		return value, nil
	})
}

// TrySet sets the value. The result has Succeeded false if others were faster at each try. It fails with [ErrUncertain]
// if nobody can know whether it was set. In Java: trySet.
func (v *DistributedAtomicValue) TrySet(ctx context.Context, value []byte) (Result[[]byte], error) {
	value = clone(value)
	return v.do(ctx, "try to set", false, func([]byte) ([]byte, error) { return value, nil })
}

// ForceSet sets the value, and tries until that succeeds. The value before is of no account. It fails with
// [ErrUncertain] if nobody can know whether it was set. In Java: forceSet.
func (v *DistributedAtomicValue) ForceSet(ctx context.Context, value []byte) error {
	value = clone(value)
	_, err := v.do(ctx, "force set", true, func([]byte) ([]byte, error) { return value, nil })
	return err
}

// Initialize creates the node with a value. It returns false if there is one. It fails with [ErrUncertain] if nobody
// can know who has created it. In Java: initialize.
func (v *DistributedAtomicValue) Initialize(ctx context.Context, value []byte) (bool, error) {
	value = clone(value)
	r, err := v.do(ctx, "initialize", false, func(pre []byte) ([]byte, error) {
		if pre != nil {
			return nil, errExists
		}
		return value, nil
	})
	return r.Succeeded, err
}

// Close removes the watch of the node and the receipt of this value, in the background. The end of the session removes
// them too, so Close is for a program that makes new values again and again. The value can be used again afterwards.
func (v *DistributedAtomicValue) Close() error { return v.engine.close() }

func (v *DistributedAtomicValue) do(
	ctx context.Context, verb string, force bool, change change,
) (Result[[]byte], error) {
	out := v.engine.do(ctx, verb, &call{change: change, force: force})
	return Result[[]byte]{out.succeeded, bytes.Clone(out.pre), bytes.Clone(out.post), out.stats}, out.err
}

// get returns the data of the node, nil if it does not exist.
func (e *engine) get(ctx context.Context) ([]byte, error) {
	if e.err != nil {
		return nil, errtext.Wrap(e.err, "atomic", "get %s", e.path)
	}
	data, err := e.client.GetData().ForPath(ctx, e.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if err = waitqueue.CheckChroot(ctx, e.client); err == nil {
			return nil, nil
		}
		fallthrough
	case err != nil:
		return nil, errtext.Wrap(err, "atomic", "get %s", e.path)
	}
	return clone(data), nil
}

// clone returns a copy that is not nil: nil would be the default data of the client.
func clone(data []byte) []byte { return append([]byte{}, data...) }
