package jute

import (
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"
)

// Reply is the body of any answer; each opcode fills the fields its record has. Paths are the server's,
// with the chroot in front.
type Reply struct {
	Path     string
	Data     []byte
	Stat     zk.Stat
	Children []string // getChildren, getChildren2; the paths of getEphemerals
	ACL      []zk.ACL // of whoAmI: Scheme and ID, no Perms
	Results  []Result // multi, multiRead
	Count    int32    // getAllChildrenNumber
	OwnStat  *zk.Stat // of a getData with OwnStat: a copy of Stat in one object with Data
}

// DecodeReply reads the body of a successful answer to op into r, whatever r held before. It fails with
// [ErrUnimplemented] for an opcode it does not know, with [ErrMarshalling] for a body that is not the
// opcode's, and with the error of the code when a watch request was answered by one; r is empty then.
func DecodeReply(op Op, body []byte, r *Reply) error {
	return decodeReply(&Request{Op: op}, math.MaxInt, body, r)
}

// DecodeReply reads the body of a successful answer to r into reply, as the function of that name does. An answer to a
// multi that has more results than r has operations is [ErrMarshalling], before memory is made for them; a path that is
// that of r is not copied.
func (r *Request) DecodeReply(body []byte, reply *Reply) error {
	return decodeReply(r, len(r.Ops), body, reply)
}

func decodeReply(req *Request, most int, body []byte, r *Reply) error {
	op := req.Op
	d := NewDecoder(body)
	*r = Reply{}
	switch op {
	case OpCreate, OpSync:
		r.Path = d.stringLike(req.Path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		r.Path = d.stringLike(req.Path)
		d.Stat(&r.Stat)
	case OpExists, OpSetData, OpSetACL:
		d.Stat(&r.Stat)
	case OpGetData, OpReconfig:
		if req.OwnStat {
			r.Data, r.OwnStat = CopyBeside(d.bytes())
			d.Stat(r.OwnStat)
			r.Stat = *r.OwnStat
			break
		}
		r.Data = d.Buffer()
		d.Stat(&r.Stat)
	case OpGetChildren, OpGetEphemerals:
		r.Children = d.Strings()
	case OpGetChildren2:
		r.Children = d.Strings()
		d.Stat(&r.Stat)
	case OpGetACL:
		r.ACL = d.ACLs()
		d.Stat(&r.Stat)
	case OpMulti, OpMultiRead:
		r.Results = d.results(most)
	case OpGetAllChildrenNumber:
		r.Count = d.Int32()
	case OpWhoAmI:
		r.ACL = d.identities()
	case OpSASL:
		r.Data = d.Buffer()
	case OpAddWatch, OpCheckWatches, OpRemoveWatches:
		// Releases differ in which of these have a body, an error code that is 0.
		if d.Len() > 0 {
			if code := Code(d.Int32()); code != CodeOK {
				return code.Err()
			}
		}
	case OpDelete, OpCheck, OpPing, OpAuth, OpSetWatches, OpSetWatches2, OpCloseSession:
	default:
		return fmt.Errorf("%w: %s", ErrUnimplemented, op)
	}
	if d.err != nil {
		*r = Reply{}
	}
	return d.err
}

// AppendReply appends the body of a successful answer, as a server does.
func AppendReply(b []byte, op Op, r *Reply) []byte {
	switch op {
	case OpCreate, OpSync:
		b = AppendString(b, r.Path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		b = AppendString(b, r.Path)
		b = AppendStat(b, &r.Stat)
	case OpExists, OpSetData, OpSetACL:
		b = AppendStat(b, &r.Stat)
	case OpGetData, OpReconfig:
		b = AppendBuffer(b, r.Data)
		b = AppendStat(b, &r.Stat)
	case OpGetChildren, OpGetEphemerals:
		b = AppendStrings(b, r.Children)
	case OpGetChildren2:
		b = AppendStrings(b, r.Children)
		b = AppendStat(b, &r.Stat)
	case OpGetACL:
		b = AppendACLs(b, r.ACL)
		b = AppendStat(b, &r.Stat)
	case OpMulti, OpMultiRead:
		b = appendResults(b, r.Results)
	case OpGetAllChildrenNumber:
		b = AppendInt32(b, r.Count)
	case OpWhoAmI:
		b = appendIdentities(b, r.ACL)
	case OpSASL:
		b = AppendBuffer(b, r.Data)
	case OpAddWatch:
		b = AppendInt32(b, int32(CodeOK))
	}
	return b
}

func appendIdentities(b []byte, v []zk.ACL) []byte {
	b = AppendInt32(b, int32(len(v)))
	for i := range v {
		b = AppendString(b, v[i].Scheme)
		b = AppendString(b, v[i].ID)
	}
	return b
}

func (d *Decoder) identities() []zk.ACL {
	n := d.count(minIdentity)
	if n < 0 {
		return nil
	}
	v := make([]zk.ACL, n)
	for i := range v {
		v[i] = zk.ACL{Scheme: d.String(), ID: d.String()}
	}
	return v
}
