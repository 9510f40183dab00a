package atomic

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/retry"
)

// DistributedAtomicNumber is a counter that processes change one after the other. A node that does not exist, or has no
// data, is 0. The changes that goroutines of one process want at the same time travel as one write, and each gets its
// own result. All methods are safe for concurrent use. In Java: DistributedAtomicNumber.
type DistributedAtomicNumber[T int32 | int64] struct{ engine *engine }

// DistributedAtomicLong is a counter of 64 bits. Its node has 8 bytes, the highest first. In Java:
// DistributedAtomicLong.
type DistributedAtomicLong = DistributedAtomicNumber[int64]

// DistributedAtomicInteger is a counter of 32 bits. Its node has 4 bytes, the highest first. In Java:
// DistributedAtomicInteger.
type DistributedAtomicInteger = DistributedAtomicNumber[int32]

// NewDistributedAtomicLong returns the counter of a path. policy decides how often, and with which pauses, a change is
// tried again that others have overtaken; a lost connection is for the policy of the client. It does no I/O. The first
// change creates the node, with its parents as containers. Every method returns an error if the path or the policy is
// invalid.
func NewDistributedAtomicLong(
	client *framework.Client, path string, policy retry.Policy, opts ...Option,
) *DistributedAtomicLong {
	return &DistributedAtomicLong{newEngine(client, "atomic_long", path, policy, opts)}
}

// NewDistributedAtomicInteger is NewDistributedAtomicLong for 32 bits.
func NewDistributedAtomicInteger(
	client *framework.Client, path string, policy retry.Policy, opts ...Option,
) *DistributedAtomicInteger {
	return &DistributedAtomicInteger{newEngine(client, "atomic_integer", path, policy, opts)}
}

// Get returns the number. It creates nothing. In Java: get.
func (n *DistributedAtomicNumber[T]) Get(ctx context.Context) (T, error) {
	data, err := n.engine.get(ctx)
	if err != nil {
		return 0, err
	}
	number, err := n.decode(data)
	if err != nil {
		return 0, errtext.Wrap(err, "atomic", "get %s", n.engine.path)
	}
	return number, nil
}

// Increment adds 1. In Java: increment.
func (n *DistributedAtomicNumber[T]) Increment(ctx context.Context) (Result[T], error) {
	return n.Add(ctx, 1)
}

// Decrement subtracts 1. In Java: decrement.
func (n *DistributedAtomicNumber[T]) Decrement(ctx context.Context) (Result[T], error) {
	return n.Subtract(ctx, 1)
}

// Add adds delta. The result has Succeeded false if others were faster at each try: nothing is added. Add fails with
// [ErrOverflow] if the sum is out of range, and with [ErrUncertain] if nobody can know whether delta was added. When
// ctx ends, nothing is added if nothing was sent; else the error wraps [ErrUncertain] too. In Java: add.
func (n *DistributedAtomicNumber[T]) Add(ctx context.Context, delta T) (Result[T], error) {
	return n.do(ctx, "add to", false, func(pre T, _ bool) (T, error) {
		sum := pre + delta
		if (sum < pre) != (delta < 0) {
			return 0, fmt.Errorf("%w: %d + %d", ErrOverflow, pre, delta)
		}
		return sum, nil
	})
}

// Subtract subtracts delta: see Add. In Java: subtract.
func (n *DistributedAtomicNumber[T]) Subtract(ctx context.Context, delta T) (Result[T], error) {
	return n.do(ctx, "subtract from", false, func(pre T, _ bool) (T, error) {
		difference := pre - delta
		if (difference > pre) != (delta < 0) {
			return 0, fmt.Errorf("%w: %d - %d", ErrOverflow, pre, delta)
		}
		return difference, nil
	})
}

// CompareAndSet sets the number if it is expected. The result has Succeeded false if it is another one, and if the node
// does not exist: see Initialize. A node without data is 0. It fails with [ErrUncertain] if nobody can know whether it
// was set. In Java: compareAndSet, which also returns false if the number was set and the answer was lost, and for a
// node without data.
func (n *DistributedAtomicNumber[T]) CompareAndSet(ctx context.Context, expected, number T) (Result[T], error) {
	return n.do(ctx, "compare and set", false, func(pre T, exists bool) (T, error) {
		if !exists || pre != expected {
			return 0, errDiffers
		}
		return number, nil
	})
}

// TrySet sets the number. The result has Succeeded false if others were faster at each try. It fails with
// [ErrUncertain] if nobody can know whether it was set. In Java: trySet.
func (n *DistributedAtomicNumber[T]) TrySet(ctx context.Context, number T) (Result[T], error) {
	return n.do(ctx, "try to set", false, func(T, bool) (T, error) { return number, nil })
}

// ForceSet sets the number, and tries until that succeeds. It also replaces corrupt data. It fails with [ErrUncertain]
// if nobody can know whether it was set. In Java: forceSet.
func (n *DistributedAtomicNumber[T]) ForceSet(ctx context.Context, number T) error {
	data, err := n.encode(number)
	return n.engine.do(ctx, "force set", &call{
		force: true, change: func([]byte) ([]byte, error) { return data, err },
	}).err
}

// Initialize creates the node with a number. It returns false if there is one. It fails with [ErrUncertain] if nobody
// can know who has created it. In Java: initialize.
func (n *DistributedAtomicNumber[T]) Initialize(ctx context.Context, number T) (bool, error) {
	data, err := n.encode(number)
	out := n.engine.do(ctx, "initialize", &call{change: func(pre []byte) ([]byte, error) {
		if pre != nil {
			return nil, errExists
		}
		return data, err
	}})
	return out.succeeded, out.err
}

// Close removes the watch of the node and the receipt of this counter, in the background. The end of the session
// removes them too, so Close is for a program that makes new counters again and again. The counter can be used again
// afterwards.
func (n *DistributedAtomicNumber[T]) Close() error { return n.engine.close() }

func (n *DistributedAtomicNumber[T]) do(
	ctx context.Context, verb string, force bool, change func(pre T, exists bool) (T, error),
) (r Result[T], err error) {
	out := n.engine.do(ctx, verb, &call{force: force, change: func(pre []byte) ([]byte, error) {
		number, err := n.decode(pre)
		if err != nil {
			return nil, err
		}
		if number, err = change(number, pre != nil); err != nil {
			return nil, err
		}
		return n.encode(number)
	}})
	r.Succeeded, r.Stats = out.succeeded, out.stats
	r.Pre, _ = n.decode(out.pre) // 0 if it is corrupt
	r.Post, _ = n.decode(out.post)
	return r, out.err
}

// encode returns the bytes of a number, or an error if they could not be read again.
func (n *DistributedAtomicNumber[T]) encode(number T) ([]byte, error) {
	data := encode(number)
	_, err := n.decode(data)
	return data, err
}

func encode[T int32 | int64](number T) []byte {
	if unsafe.Sizeof(number) == 4 {
		return binary.BigEndian.AppendUint32(nil, uint32(number))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(number))
}

// decode returns the number in data. Bytes behind it are ignored, as in Java.
func (n *DistributedAtomicNumber[T]) decode(data []byte) (T, error) {
	var number T
	size := int(unsafe.Sizeof(number))
	switch {
	case len(data) == 0:
		return 0, nil
	case n.engine.isText(data): // of any length
		return 0, fmt.Errorf("%w: %q", ErrText, data)
	case len(data) < size:
		return 0, fmt.Errorf("%w: %d bytes instead of %d", ErrCorrupt, len(data), size)
	case size == 4:
		return T(int32(binary.BigEndian.Uint32(data))), nil
	}
	return T(int64(binary.BigEndian.Uint64(data))), nil
}
