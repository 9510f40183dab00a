package shared

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
)

// SharedCount is a number in a node, which all processes share, with a copy in memory. It is a [SharedValue] of four
// bytes, the highest first; further bytes are ignored. A node with fewer bytes leaves the count as it is: see
// [SharedCount.Err]. It can be the number of leases of a semaphore: see locks.WithLeaseCount. All methods are safe for
// concurrent use. In Java: SharedCount.
type SharedCount struct { //nolint:revive // the name is Java's
	value *SharedValue
	seed  int

	mu    sync.Mutex
	count VersionedValue[int] // the last one that has four bytes
}

// NewSharedCount returns the count of the node at path. It does no I/O. seed is the number of the node if Start creates
// it, and the count until then. If path is invalid or seed has more than 32 bits, Start returns an error. In Java: new
// SharedCount.
func NewSharedCount(client *framework.Client, path string, seed int, opts ...Option) *SharedCount {
	c := &SharedCount{seed: seed, count: VersionedValue[int]{Value: seed, Version: -1, Zxid: -1}}
	c.value = newSharedValue(client, "shared_count", path, encodeCount(seed), opts)
	c.value.onChange = c.note
	return c
}

// note makes a value the count, if it is one.
func (c *SharedCount) note(v VersionedValue[[]byte]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, err := decodeCount(v.Value); err == nil {
		c.count = with(v, n)
	}
}

// encodeCount returns the bytes of a count.
func encodeCount(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(n))) }

// decodeCount returns the count of bytes.
func decodeCount(data []byte) (int, error) {
	if len(data) < 4 {
		return 0, fmt.Errorf("%w, not %d", ErrShortData, len(data))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}

// checkCount returns an error if n has more than 32 bits.
func checkCount(n int) error {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return fmt.Errorf("%w: the count %d has more than 32 bits", framework.ErrBadArguments, n)
	}
	return nil
}

// Start is [SharedValue.Start]. It also returns [ErrShortData] if the node has fewer than four bytes. In Java: start.
func (c *SharedCount) Start(ctx context.Context) error {
	err := checkCount(c.seed)
	if err == nil {
		err = c.value.start(ctx, func(data []byte) error {
			_, err := decodeCount(data)
			return err
		})
	}
	return c.value.wrap(err, "start")
}

// Count returns the number: the seed before Start. In Java: getCount.
func (c *SharedCount) Count() int { return c.VersionedValue().Value }

// VersionedValue returns the number with its version, for [SharedCount.TrySetCount]. In Java: getVersionedValue.
func (c *SharedCount) VersionedValue() VersionedValue[int] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Err returns the error of the last read of the node, or [ErrShortData] if it has fewer than four bytes.
func (c *SharedCount) Err() error {
	if err := c.value.Err(); err != nil {
		return err
	}
	_, err := decodeCount(c.value.Value())
	return c.value.wrap(err, "read")
}

// SetCount is [SharedValue.SetValue] of a number. In Java: setCount.
func (c *SharedCount) SetCount(ctx context.Context, n int) error {
	if err := checkCount(n); err != nil {
		return c.value.wrap(err, "set")
	}
	return c.value.SetValue(ctx, encodeCount(n))
}

// TrySetCount is [SharedValue.TrySetValue] of a number. In Java: trySetCount.
func (c *SharedCount) TrySetCount(ctx context.Context, previous VersionedValue[int], n int) (bool, error) {
	err := checkCount(n)
	set := false
	if err == nil {
		set, err = c.value.trySet(ctx, previous.stat(), encodeCount(n))
	}
	return set, c.value.wrap(err, "try to set")
}

// AddListener is [SharedValue.AddListener]. A node with fewer than four bytes goes to the unhandled-error listeners of
// the client. In Java: addListener.
func (c *SharedCount) AddListener(fn callbacks.Listener[VersionedValue[int]]) (remove func()) {
	return c.value.AddListener(func(ctx context.Context, v VersionedValue[[]byte]) {
		n, err := decodeCount(v.Value)
		if err != nil {
			err = errtext.Wrap(err, "shared", "read %s", c.value.path)
			c.value.client.ReportUnhandled(context.WithoutCancel(ctx), "SharedCount "+c.value.path, err)
			return
		}
		fn(ctx, with(v, n))
	})
}

// AddConnectionStateListener is [SharedValue.AddConnectionStateListener]. In Java: SharedCountListener.stateChanged.
func (c *SharedCount) AddConnectionStateListener(fn callbacks.Listener[framework.ConnectionState]) (remove func()) {
	return c.value.AddConnectionStateListener(fn)
}

// Changed returns a channel that is closed when the number changes after the call.
func (c *SharedCount) Changed() <-chan struct{} { return c.value.Changed() }

// Close is [SharedValue.Close]. In Java: close.
func (c *SharedCount) Close() error { return c.value.Close() }
