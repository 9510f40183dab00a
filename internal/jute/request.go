package jute

import (
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Request is the body of any client request; each opcode uses the fields its record has. The requests a
// session sends on its own behalf have types of their own: [ConnectRequest], [Auth], [SetWatches].
type Request struct {
	Op       Op
	Flags    int32 // create: mode flags; addWatch: mode; checkWatches, removeWatches: watcher type
	Version  int32
	Watch    bool
	AtRoot   bool // Path is not put under a chroot
	OwnStat  bool // getData: the answer has one, see Reply
	Path     string
	Data     []byte // create, setData; the token of sasl
	ACL      []zk.ACL
	TTL      int64     // createTTL, in milliseconds
	Ops      []Request // multi, multiRead
	Reconfig *Reconfig
}

// isSequential reports whether the server is to put a number behind the name of a node of these flags.
func isSequential(flags int32) bool { return flags == 2 || flags == 3 || flags == 6 }

// AppendRequest appends the body that follows the request header. Every path in it, those of a multi's
// operations included, is put under chroot, unless it is AtRoot; "" is no chroot, and a chroot has no slash at its end.
// An opcode without a body, or whose body is not a Request, appends nothing.
func AppendRequest(b []byte, chroot string, r *Request) []byte {
	if r.AtRoot {
		chroot = ""
	}
	switch r.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		if r.Path == "/" && isSequential(r.Flags) { // the number goes below the chroot, not beside it
			b = AppendString(b, chroot+"/")
		} else {
			b = appendPath(b, chroot, r.Path)
		}
		b = AppendBuffer(b, r.Data)
		b = AppendACLs(b, r.ACL)
		b = AppendInt32(b, r.Flags)
		if r.Op == OpCreateTTL {
			b = AppendInt64(b, r.TTL)
		}
	case OpDelete, OpCheck:
		b = appendPath(b, chroot, r.Path)
		b = AppendInt32(b, r.Version)
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		b = appendPath(b, chroot, r.Path)
		b = AppendBool(b, r.Watch)
	case OpSetData:
		b = appendPath(b, chroot, r.Path)
		b = AppendBuffer(b, r.Data)
		b = AppendInt32(b, r.Version)
	case OpGetACL, OpSync, OpGetAllChildrenNumber:
		b = appendPath(b, chroot, r.Path)
	case OpGetEphemerals:
		b = AppendString(b, chroot+r.Path) // a prefix: "/" below a chroot is "/chroot/"
	case OpSetACL:
		b = appendPath(b, chroot, r.Path)
		b = AppendACLs(b, r.ACL)
		b = AppendInt32(b, r.Version)
	case OpAddWatch, OpCheckWatches, OpRemoveWatches:
		b = appendPath(b, chroot, r.Path)
		b = AppendInt32(b, r.Flags)
	case OpMulti, OpMultiRead:
		for i := range r.Ops {
			b = appendMultiHeader(b, multiHeader{op: r.Ops[i].Op, err: -1})
			b = AppendRequest(b, chroot, &r.Ops[i])
		}
		b = appendMultiHeader(b, multiEnd)
	case OpReconfig:
		b = appendReconfig(b, r.Reconfig)
	case OpSASL:
		b = AppendBuffer(b, r.Data)
	}
	return b
}

// DecodeRequest reads the body AppendRequest makes. It fails with [ErrUnimplemented] for an opcode whose
// body is not a Request, and with [ErrMarshalling] for a body that is not the opcode's.
func DecodeRequest(op Op, body []byte) (Request, error) {
	d := NewDecoder(body)
	r := Request{Op: op}
	switch op {
	case OpMulti, OpMultiRead:
		r.Ops = d.multiOps(op)
	case OpPing, OpWhoAmI, OpCloseSession:
	default:
		if !d.request(&r) {
			return Request{}, fmt.Errorf("%w: %s", ErrUnimplemented, op)
		}
	}
	if d.err != nil {
		return Request{}, d.err
	}
	return r, nil
}

// request reads the body of a single operation and reports whether the opcode is known.
func (d *Decoder) request(r *Request) bool {
	if r.Op == OpReconfig {
		r.Reconfig = d.reconfig()
		return true
	}
	if r.Op == OpSASL {
		r.Data = d.Buffer()
		return true
	}
	r.Path = d.String()
	switch r.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r.Data = d.Buffer()
		r.ACL = d.ACLs()
		r.Flags = d.Int32()
		if r.Op == OpCreateTTL {
			r.TTL = d.Int64()
		}
	case OpDelete, OpCheck:
		r.Version = d.Int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		r.Watch = d.Bool()
	case OpSetData:
		r.Data = d.Buffer()
		r.Version = d.Int32()
	case OpGetACL, OpSync, OpGetEphemerals, OpGetAllChildrenNumber:
	case OpSetACL:
		r.ACL = d.ACLs()
		r.Version = d.Int32()
	case OpAddWatch, OpCheckWatches, OpRemoveWatches:
		r.Flags = d.Int32()
	default:
		return false
	}
	return true
}
