package shared

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
)

// SharedCount is a number in a node, which all processes share, with a copy in memory. It is a [SharedValue] of four
// bytes, the highest first; further bytes are ignored. A node with fewer bytes, or with the text of a number, leaves
// the count as it is: see [SharedCount.Err]. It can be the number of leases of a semaphore: see locks.WithLeaseCount.
// All methods are safe for concurrent use. In Java: SharedCount.
type SharedCount struct { //nolint:revive // the name is Java's
	value  *SharedValue
	seed   int
	isText func(data []byte) bool // reports whether data is refused, because another library may have written it

	mu    sync.Mutex
	count VersionedValue[int] // the last one that could be read
}

// NewSharedCount returns the count of the node at path. It does no I/O. seed is the number of the node if Start creates
// it, and the count until then. If path is invalid or seed has more than 32 bits, Start returns an error. In Java: new
// SharedCount.
func NewSharedCount(client *framework.Client, path string, seed int, opts ...Option) *SharedCount {
	c := &SharedCount{seed: seed, count: VersionedValue[int]{Value: seed, Version: -1, Zxid: -1}}
	c.isText = settingsOf(opts).isText
	c.value = newSharedValue(client, "shared_count", path, encodeCount(seed), opts)
	c.value.onChange = c.note
	return c
}

// note makes a value the count, if it is one.
func (c *SharedCount) note(v VersionedValue[[]byte]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, err := c.decode(v.Value); err == nil {
		c.count = with(v, n)
	}
}

// encodeCount returns the bytes of a count.
func encodeCount(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(n))) }

// decode returns the count of bytes.
func (c *SharedCount) decode(data []byte) (int, error) {
	switch {
	case c.isText(data): // of any length
		return 0, fmt.Errorf("%w: %q", ErrText, data)
	case len(data) < 4:
		return 0, fmt.Errorf("%w, not %d", ErrShortData, len(data))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}

// check returns an error if n has more than 32 bits, or bytes that could not be read again.
func (c *SharedCount) check(n int) error {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return fmt.Errorf("%w: the count %d has more than 32 bits", framework.ErrBadArguments, n)
	}
	_, err := c.decode(encodeCount(n))
	return err
}

// Start is [SharedValue.Start]. It also returns [ErrText] if the node has the text of a number, and [ErrShortData] if
// it has fewer than four bytes of anything else: see [SharedCount.SetCount]. In Java: start.
func (c *SharedCount) Start(ctx context.Context) error {
	err := c.check(c.seed)
	if err == nil {
		err = c.value.start(ctx, func(data []byte) error {
			_, err := c.decode(data)
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

// Err returns the error of the last read of the node, or the reason why it has no count: [ErrShortData] or [ErrText].
func (c *SharedCount) Err() error {
	if err := c.value.Err(); err != nil {
		return err
	}
	return c.value.wrap(c.unreadable(), "read")
}

// unreadable returns why the copy of the node is no count, or nil if it is one.
func (c *SharedCount) unreadable() error {
	_, err := c.decode(c.value.Value())
	return err
}

// SetCount is [SharedValue.SetValue] of a number. It replaces data that is no count, also after a Start that has failed
// with [ErrShortData] or [ErrText]: then it only writes, and Start can be called again. In Java: setCount.
func (c *SharedCount) SetCount(ctx context.Context, n int) error {
	if err := c.check(n); err != nil {
		return c.value.wrap(err, "set")
	}
	if errors.Is(c.value.checkRunning(), ErrNotStarted) && c.unreadable() != nil { // as Start has found it
		_, err := c.value.set(ctx, encodeCount(n))
		return c.value.wrap(err, "set")
	}
	return c.value.SetValue(ctx, encodeCount(n))
}

// TrySetCount is [SharedValue.TrySetValue] of a number. If another client has set the node to what is no count, so that
// there is no newer count to try with, the error is [ErrShortData] or [ErrText]. In Java: trySetCount.
func (c *SharedCount) TrySetCount(ctx context.Context, previous VersionedValue[int], n int) (bool, error) {
	err := c.check(n)
	set := false
	if err == nil {
		set, err = c.value.trySet(ctx, previous.stat(), encodeCount(n))
	}
	if err == nil && !set {
		err = c.unreadable() // false says that VersionedValue has a newer count
	}
	return set, c.value.wrap(err, "try to set")
}

// AddListener is [SharedValue.AddListener]. A node that has no count goes to the unhandled-error listeners of the
// client, with [ErrShortData] or [ErrText]. In Java: addListener.
func (c *SharedCount) AddListener(fn callbacks.Listener[VersionedValue[int]]) (remove func()) {
	return c.value.AddListener(func(ctx context.Context, v VersionedValue[[]byte]) {
		n, err := c.decode(v.Value)
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
