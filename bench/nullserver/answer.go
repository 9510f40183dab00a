package nullserver

import (
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// PayloadSize is the length of every node's data.
const PayloadSize = 100

const (
	maxFrame = 4 << 20 // no client sends a longer frame
	zxid     = 1       // of every answer: no node changes
)

// sessions counts the sessions; only their ids must differ.
var sessions atomic.Int64

// everyNode has the fields of any node; a reply takes those of its record.
var everyNode = jute.Reply{
	Data:     make([]byte, PayloadSize),
	Stat:     zk.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid, DataLength: PayloadSize},
	ACL:      zk.WorldACL(zk.PermAll),
	Children: []string{},
}

// statBody is the stat that ends the answer to a create.
var statBody = jute.AppendStat(nil, &everyNode.Stat)

// bodies holds, at its opcode, each answer that does not depend on the request. It is never nil for such an opcode.
var bodies = func() (b [jute.OpWhoAmI + 1][]byte) {
	for _, op := range []jute.Op{
		jute.OpDelete, jute.OpExists, jute.OpGetData, jute.OpSetData, jute.OpGetACL, jute.OpSetACL,
		jute.OpGetChildren, jute.OpPing, jute.OpGetChildren2, jute.OpCheck, jute.OpReconfig,
		jute.OpCheckWatches, jute.OpRemoveWatches, jute.OpAuth, jute.OpSetWatches, jute.OpGetEphemerals,
		jute.OpGetAllChildrenNumber, jute.OpSetWatches2, jute.OpAddWatch, jute.OpWhoAmI,
	} {
		b[op] = jute.AppendReply([]byte{}, op, &everyNode)
	}
	return b
}()

// answerAll answers the frames of the connection until it ends. It answers all frames of one read with one write, so a
// request costs little more than a copy of its answer.
func answerAll(c net.Conn) {
	in := make([]byte, 256<<10)
	out := make([]byte, 0, 256<<10)
	shaken, used := false, 0 // in[:used] is read and not yet answered
	for {
		n, err := c.Read(in[used:])
		if err != nil {
			return
		}
		used += n
		rest, open := in[:used], true
		out = out[:0]
		for open {
			frame, after, ok := cutFrame(rest)
			if !ok {
				break
			}
			rest = after
			if shaken {
				out, open = appendAnswer(out, frame)
			} else {
				out, open = appendHandshake(out, frame)
				shaken = true
			}
		}
		if _, err := c.Write(out); err != nil || !open {
			return
		}
		in, used = keep(in, rest)
		if in == nil {
			return
		}
	}
}

// cutFrame cuts the first frame, without its length, off b. ok is false if the frame is incomplete.
func cutFrame(b []byte) (frame, after []byte, ok bool) {
	if len(b) < 4 {
		return nil, b, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, b, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// keep moves the unanswered rest to the front of the buffer, which grows if its frame is larger. It returns nil if the
// frame is too long.
func keep(in, rest []byte) (buffer []byte, used int) {
	if len(rest) >= 4 {
		n := int64(binary.BigEndian.Uint32(rest)) + 4
		if n > maxFrame {
			return nil, 0
		}
		if n > int64(len(in)) {
			in = make([]byte, n)
		}
	}
	return in, copy(in, rest)
}

// appendHandshake answers the connect request with a session: the requested one, or a new one.
func appendHandshake(out, frame []byte) (_ []byte, open bool) {
	req, err := jute.DecodeConnectRequest(frame)
	if err != nil {
		return out, false
	}
	id := req.SessionID
	if id == 0 {
		id = sessions.Add(1)
	}
	return appendFrame(out, func(out []byte) []byte {
		return jute.AppendConnectResponse(out, &jute.ConnectResponse{
			TimeoutMs:   req.TimeoutMs,
			SessionID:   id,
			Password:    make([]byte, jute.PasswordSize),
			HasReadOnly: req.HasReadOnly,
		})
	}), true
}

// appendAnswer answers one request. open is false if the connection ends after it.
func appendAnswer(out, frame []byte) (_ []byte, open bool) {
	h, body, err := jute.DecodeRequestHeader(frame)
	if err != nil {
		return out, false
	}
	open = h.Op != jute.OpCloseSession
	out = appendFrame(out, func(out []byte) []byte {
		reply := jute.ReplyHeader{Xid: h.Xid, Zxid: zxid}
		start := len(out)
		out, reply.Code = appendBody(jute.AppendReplyHeader(out, reply), h.Op, body)
		if reply.Code != jute.CodeOK {
			out = jute.AppendReplyHeader(out[:start], reply)
		}
		return out
	})
	return out, open
}

// appendBody appends what follows the header in the answer to a request.
func appendBody(out []byte, op jute.Op, request []byte) ([]byte, jute.Code) {
	switch op {
	case jute.OpCreate, jute.OpSync:
		return appendPath(out, request)
	case jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		out, code := appendPath(out, request)
		return append(out, statBody...), code
	case jute.OpMulti, jute.OpMultiRead:
		return appendMulti(out, op, request)
	case jute.OpCloseSession:
		return out, jute.CodeOK
	}
	if op < 0 || int(op) >= len(bodies) || bodies[op] == nil {
		return out, jute.CodeUnimplemented
	}
	return append(out, bodies[op]...), jute.CodeOK
}

// appendPath appends the path at the beginning of a request.
func appendPath(out, request []byte) ([]byte, jute.Code) {
	path, _, ok := cutFrame(request) // a string has the format of a frame: a length and bytes
	if !ok {
		return out, jute.CodeMarshallingError
	}
	return append(out, request[:4+len(path)]...), jute.CodeOK
}

// appendMulti answers a multi with one success for each of its operations.
func appendMulti(out []byte, op jute.Op, request []byte) ([]byte, jute.Code) {
	req, err := jute.DecodeRequest(op, request)
	if err != nil {
		return out, jute.CodeMarshallingError
	}
	reply := jute.Reply{Results: make([]jute.Result, len(req.Ops))}
	for i, o := range req.Ops {
		reply.Results[i] = jute.Result{
			Op: o.Op, Path: o.Path, Data: everyNode.Data, Stat: everyNode.Stat, Children: everyNode.Children,
		}
	}
	return jute.AppendReply(out, op, &reply), jute.CodeOK
}

// appendFrame appends what body appends, with its length in front.
func appendFrame(out []byte, body func([]byte) []byte) []byte {
	start := len(out)
	out = body(jute.AppendInt32(out, 0))
	binary.BigEndian.PutUint32(out[start:], uint32(len(out)-start-4))
	return out
}
