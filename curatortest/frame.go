package curatortest

import (
	"encoding/binary"
	"strings"

	"github.com/gocurator/curator/internal/jute"
)

const (
	// lengthSize is the length in front of a frame.
	lengthSize = 4
	// maxFrame is more than any server is configured for: a larger length does not belong to a frame.
	maxFrame = 64 << 20
	// defaultMaxRequest is the default limit of a server: jute.maxbuffer of Java.
	defaultMaxRequest = 1<<20 - 1
)

// message is the part of a frame that rules and the trace use.
type message struct {
	connection int64
	session    int64
	xid        int32
	op         string
	path       string   // as the trace shows it
	paths      []string // nil if path is the only one
}

// readConnect reads the first frame of a client.
func (m *message) readConnect(frame []byte) {
	m.op = opConnect
	if r, err := jute.DecodeConnectRequest(frame); err == nil {
		m.session = r.SessionID
	}
}

// readRequest reads any other frame of a client. It leaves out fields that it cannot read: the server refuses them.
func (m *message) readRequest(frame []byte) {
	h, body, err := jute.DecodeRequestHeader(frame)
	if err != nil {
		return
	}
	m.xid, m.op = h.Xid, h.Op.String()
	switch h.Op {
	case jute.OpPing, jute.OpWhoAmI, jute.OpCloseSession, jute.OpReconfig, jute.OpSASL, jute.OpAuth:
	case jute.OpMulti, jute.OpMultiRead:
		r, err := jute.DecodeRequest(h.Op, body)
		if err != nil {
			break
		}
		for _, op := range r.Ops {
			m.paths = append(m.paths, op.Path)
		}
		m.path = strings.Join(m.paths, ",")
		if len(r.Ops) == 0 {
			m.op = opHeartbeat
		}
	case jute.OpSetWatches:
		w, err := jute.DecodeSetWatches(body)
		if err == nil {
			m.addWatches(&w)
		}
	case jute.OpSetWatches2:
		w, err := jute.DecodeSetWatches2(body)
		if err == nil {
			m.addWatches(&w)
		}
	default: // the path comes first in all others, and nothing else is used
		d := jute.NewDecoder(body)
		if path := d.String(); d.Err() == nil && strings.HasPrefix(path, "/") {
			m.path = path
		}
	}
}

// addWatches leaves path empty: otherwise the trace would grow by all watches of a client with every connection.
func (m *message) addWatches(w *jute.SetWatches) {
	for _, list := range [][]string{w.Data, w.Exist, w.Child, w.Persistent, w.Recursive} {
		m.paths = append(m.paths, list...)
	}
}

// frameLength reads the length in front of a frame.
func frameLength(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }

// isFourLetterWord reports whether the first bytes of a client are a four-letter word. As a length they would be out of
// bounds.
func isFourLetterWord(b []byte) bool {
	for _, c := range b {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// innocent turns the request in frame into one that changes nothing and has an answer: exists of the root. For a login
// it is the identity that every connection has: a server may accept nothing else before the login, and the answers of
// both have no zxid. If the length was sent already it stays; a server ignores the bytes behind a request.
func innocent(frame []byte, m *message, keepLength bool) []byte {
	size := len(frame)
	if m.op == jute.OpSASL.String() || m.op == jute.OpAuth.String() {
		frame = jute.AppendRequestHeader(frame[:lengthSize], jute.RequestHeader{Xid: m.xid, Op: jute.OpAuth})
		frame = jute.AppendAuth(frame, &jute.Auth{Scheme: "ip"})
	} else {
		frame = jute.AppendRequestHeader(frame[:lengthSize], jute.RequestHeader{Xid: m.xid, Op: jute.OpExists})
		frame = jute.AppendRequest(frame, "", &jute.Request{Op: jute.OpExists, Path: "/"})
	}
	if keepLength {
		clear(frame[len(frame):size])
		return frame[:size]
	}
	return setLength(frame)
}

// verdict turns the reply in frame into a header alone.
func verdict(frame []byte, h jute.ReplyHeader) []byte {
	return setLength(jute.AppendReplyHeader(frame[:lengthSize], h))
}

// setLength writes the length in front of a frame.
func setLength(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthSize))
	return frame
}
