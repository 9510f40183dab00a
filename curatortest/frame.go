package curatortest

import (
	"encoding/binary"
	"strings"

	"github.com/gocurator/curator/internal/jute"
)

const (
	// lengthSize is the length in front of a frame.
	lengthSize = 4
	// maxFrame is what a server might just be configured for; a length above means that these are no frames.
	maxFrame = 64 << 20
	// defaultMaxRequest is the limit of a server that is not configured for another: jute.maxbuffer of Java.
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

// readRequest reads any other frame of a client. What it cannot read it leaves out: that is for the server to
// refuse.
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
	default: // the path comes first in all others, and is all that is worth decoding
		d := jute.NewDecoder(body)
		if path := d.String(); d.Err() == nil && strings.HasPrefix(path, "/") {
			m.path = path
		}
	}
}

// addWatches leaves path empty: the trace would grow by all watches of a client with every connection.
func (m *message) addWatches(w *jute.SetWatches) {
	for _, list := range [][]string{w.Data, w.Exist, w.Child, w.Persistent, w.Recursive} {
		m.paths = append(m.paths, list...)
	}
}

// frameLength reads the length in front of a frame.
func frameLength(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }

// isFourLetterWord reports whether the first bytes of a client are a command for people. As a length they would
// be out of bounds.
func isFourLetterWord(b []byte) bool {
	for _, c := range b {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// innocent makes the request in frame one that changes nothing and is answered as well: exists of the root.
// If the length has gone ahead it stays as it is; a server takes no notice of what is behind a request.
func innocent(frame []byte, xid int32, keepLength bool) []byte {
	size := len(frame)
	frame = jute.AppendRequestHeader(frame[:lengthSize], jute.RequestHeader{Xid: xid, Op: jute.OpExists})
	frame = jute.AppendRequest(frame, "", &jute.Request{Op: jute.OpExists, Path: "/"})
	if keepLength {
		clear(frame[len(frame):size])
		return frame[:size]
	}
	return setLength(frame)
}

// verdict makes the reply in frame a header alone.
func verdict(frame []byte, h jute.ReplyHeader) []byte {
	return setLength(jute.AppendReplyHeader(frame[:lengthSize], h))
}

// setLength writes the length in front of a frame.
func setLength(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthSize))
	return frame
}
