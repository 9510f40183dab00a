package kerberos

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// parseCache reads the format of FILE credential caches, of which versions 3 and 4 are in use, and returns the
// principal and its ticket for the KDC. The parser of gokrb5 is not used: here a file that cannot be read is an error,
// and the process goes on.
func parseCache(b []byte) (principalName, *ticket, error) {
	r := &cacheReader{rest: b}
	head := r.take(2)
	if r.failed || head[0] != 5 || head[1] != 3 && head[1] != 4 {
		return principalName{}, nil, errCache
	}
	if head[1] == 4 {
		r.take(int(r.uint16())) // the difference of the clocks, which nobody sets
	}
	who := r.principal()
	if r.failed {
		return principalName{}, nil, errCache
	}
	var found *ticket
	for len(r.rest) > 0 {
		server, t, raw := r.credential(head[1] == 3)
		if r.failed {
			return principalName{}, nil, errCache
		}
		if !server.equal(ticketGranting(who.realm, who.realm)) || found != nil && found.until.After(t.until) {
			continue
		}
		if err := unmarshalTicket(raw, &t.Ticket); err != nil {
			return principalName{}, nil, errCache
		}
		if _, err := typeOf(t.key); err == nil {
			found = t
		}
	}
	if found == nil {
		return who, nil, errNoTicket
	}
	return who, found, nil
}

var (
	errCache    = errors.New("it is no FILE cache of version 3 or 4, or is being written")
	errNoTicket = errors.New("it has no ticket for the KDC")
)

// cacheReader reads the numbers and texts of a cache.
type cacheReader struct {
	rest   []byte
	failed bool
}

func (r *cacheReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) || r.failed {
		r.failed, r.rest = true, nil
		return make([]byte, 8) // enough for a number
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *cacheReader) uint16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *cacheReader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *cacheReader) data() []byte   { return r.take(int(r.uint32())) }

// time returns a time; it is 32 bits without a sign until 2106.
func (r *cacheReader) time() time.Time { return time.Unix(int64(r.uint32()), 0) }

func (r *cacheReader) principal() (p principalName) {
	r.uint32() // the type of the name
	n := r.uint32()
	p.realm = string(r.data())
	for ; n > 0 && !r.failed; n-- {
		p.parts = append(p.parts, string(r.data()))
	}
	return p
}

// credential reads a ticket, whose bytes are raw.
func (r *cacheReader) credential(twice bool) (server principalName, t *ticket, raw []byte) {
	t = &ticket{}
	r.principal()
	server = r.principal()
	kind := int32(r.uint16())
	if twice {
		r.uint16()
	}
	t.key = types.EncryptionKey{KeyType: kind, KeyValue: r.data()}
	authenticated := r.time()
	if t.from = r.time(); t.from.Unix() == 0 {
		t.from = authenticated
	}
	t.until, t.renewable = r.time(), r.time()
	r.take(1 + 4) // whether it is for another user's key, and flags
	for range 2 { // addresses and authorization data
		for n := r.uint32(); n > 0 && !r.failed; n-- {
			r.uint16()
			r.data()
		}
	}
	raw = r.data()
	r.data() // a second ticket
	return server, t, raw
}

// unmarshalTicket reads a ticket. One that gokrb5 cannot work with is an error here, so that the process goes on.
func unmarshalTicket(b []byte, t *messages.Ticket) error {
	if err := t.Unmarshal(b); err != nil {
		return err
	}
	if len(t.SName.NameString) == 0 {
		return errNoTicket
	}
	return nil
}
