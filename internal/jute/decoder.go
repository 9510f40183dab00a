package jute

import (
	"encoding/binary"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// The least bytes one element of a vector takes: what a count must be plausible against.
const (
	minString   = 4
	minACL      = 12
	minIdentity = 8
	statSize    = 68
)

// Made once, so that hostile input does not cost a formatted error per frame.
var (
	errShort   = fmt.Errorf("%w: record is cut short", ErrMarshalling)
	errLength  = fmt.Errorf("%w: impossible length", ErrMarshalling)
	errMultiOp = fmt.Errorf("%w: operation cannot be part of a multi", ErrMarshalling)
)

// Decoder reads records off a frame. The first thing it cannot read makes Err non-nil and empties it; from
// then on every method gives the zero value, so a record is read whole and checked once.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder starts at the beginning of b, which is neither copied nor written to.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Err returns the first failure, which wraps [ErrMarshalling], or nil.
func (d *Decoder) Err() error { return d.err }

// Len returns the number of bytes left.
func (d *Decoder) Len() int { return len(d.b) }

// Rest takes all bytes that are left. They are the frame's own, not a copy.
func (d *Decoder) Rest() []byte {
	b := d.b
	d.b = nil
	return b
}

// Int32 reads an int.
func (d *Decoder) Int32() int32 {
	p := d.take(4)
	if p == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p))
}

// Int64 reads a long.
func (d *Decoder) Int64() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

// Bool reads a boolean; any byte but 0 is true, as in Java.
func (d *Decoder) Bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

// String reads a string, Java's null as "".
func (d *Decoder) String() string {
	return string(d.bytes())
}

// stringLike is String that returns s itself if that is what it reads.
func (d *Decoder) stringLike(s string) string {
	p := d.bytes()
	if string(p) == s {
		return s
	}
	return string(p)
}

// Buffer reads a buffer into a copy of its own: nil for Java's null, not nil when it is only empty.
func (d *Decoder) Buffer() []byte {
	return clone(d.bytes())
}

// Strings reads a vector of strings: nil for Java's null, not nil when it is only empty.
func (d *Decoder) Strings() []string {
	n := d.count(minString)
	if n < 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = d.String()
	}
	return v
}

// ACLs reads a vector of ACL entries: nil for Java's null, not nil when it is only empty.
func (d *Decoder) ACLs() []zk.ACL {
	n := d.count(minACL)
	if n < 0 {
		return nil
	}
	v := make([]zk.ACL, n)
	for i := range v {
		v[i] = zk.ACL{Perms: d.Int32(), Scheme: d.String(), ID: d.String()}
	}
	return v
}

// Stat reads a node's stat into s, which stays as it is if the bytes do not suffice.
func (d *Decoder) Stat(s *zk.Stat) {
	p := d.take(statSize)
	if p == nil {
		return
	}
	be := binary.BigEndian
	s.Czxid = int64(be.Uint64(p[0:]))
	s.Mzxid = int64(be.Uint64(p[8:]))
	s.Ctime = int64(be.Uint64(p[16:]))
	s.Mtime = int64(be.Uint64(p[24:]))
	s.Version = int32(be.Uint32(p[32:]))
	s.Cversion = int32(be.Uint32(p[36:]))
	s.Aversion = int32(be.Uint32(p[40:]))
	s.EphemeralOwner = int64(be.Uint64(p[44:]))
	s.DataLength = int32(be.Uint32(p[52:]))
	s.NumChildren = int32(be.Uint32(p[56:]))
	s.Pzxid = int64(be.Uint64(p[60:]))
}

// take returns the next n bytes of the frame, or nil and sets the error; n is not negative.
func (d *Decoder) take(n int) []byte {
	if n > len(d.b) || d.err != nil {
		d.fail(errShort)
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

// bytes returns the content of a string or buffer, still in the frame; nil for Java's null.
func (d *Decoder) bytes() []byte {
	n := d.length()
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// count reads a vector's count and refuses one the remaining bytes cannot hold, before any memory is made
// for it. It is -1 for Java's null and on failure.
func (d *Decoder) count(least int) int {
	n := d.length()
	if n > len(d.b)/least {
		d.fail(errLength)
		return -1
	}
	return n
}

// length reads a length or count: -1 for Java's null and on failure.
func (d *Decoder) length() int {
	n := d.Int32()
	if n < -1 {
		d.fail(errLength)
	}
	if d.err != nil {
		return -1
	}
	return int(n)
}

// fail keeps the first error and empties the decoder, so that a loop over what is left ends.
func (d *Decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}
