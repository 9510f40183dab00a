package jute

// multiHeader stands before each operation and each result of a multi, and ends the list.
type multiHeader struct {
	op   Op
	done bool
	err  Code
}

var multiEnd = multiHeader{op: OpError, done: true, err: -1}

func appendMultiHeader(b []byte, h multiHeader) []byte {
	b = AppendInt32(b, int32(h.op))
	b = AppendBool(b, h.done)
	return AppendInt32(b, int32(h.err))
}

// next reads a header and reports whether an element follows it; after an error none does.
func (d *Decoder) next(h *multiHeader) bool {
	*h = multiHeader{op: Op(d.Int32()), done: d.Bool(), err: Code(d.Int32())}
	return d.err == nil && !h.done
}

// multiOps reads the operations of a multi or multiRead up to the closing header. An operation the kind of
// multi cannot hold is refused, another multi above all: it would let a frame choose the depth of recursion.
func (d *Decoder) multiOps(kind Op) []Request {
	var ops []Request
	var h multiHeader
	for d.next(&h) {
		r := Request{Op: h.op}
		if !holds(kind, h.op) {
			d.fail(errMultiOp)
			break
		}
		d.request(&r)
		ops = append(ops, r)
	}
	return ops
}

// holds reports whether an operation may be part of a multi of that kind.
func holds(kind, op Op) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
		return kind == OpMulti
	case OpGetData, OpGetChildren:
		return kind == OpMultiRead
	}
	return false
}
