package curatortest

import (
	"encoding/binary"
	"strings"

	"github.com/gocurator/curator/internal/jute"
)

// maxFrame bounds a frame; the server's own bound, jute.maxbuffer, is 1 MiB by default.
const maxFrame = 64 << 20

// lengthSize is the length in front of a frame.
const lengthSize = 4

// message is what rules and the trace want to know of a frame.
type message struct {
	session int64
	xid     int32
	op      string
	paths   []string
}

// path is how the trace shows the paths.
func (m *message) path() string {
	if m.op == jute.OpSetWatches.String() || m.op == jute.OpSetWatches2.String() {
		return ""
	}
	return strings.Join(m.paths, ",")
}

// readConnect reads the first frame of a client.
func readConnect(frame []byte) message {
	m := message{op: opConnect}
	if r, err := jute.DecodeConnectRequest(frame); err == nil {
		m.session = r.SessionID
	}
	return m
}

// readRequest reads any other frame of a client. What it cannot read it leaves out: that is for the server to
// refuse.
func readRequest(session int64, frame []byte) message {
	m := message{session: session}
	h, body, err := jute.DecodeRequestHeader(frame)
	if err != nil {
		return m
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
			m.paths = []string{path}
		}
	}
	return m
}

func (m *message) addWatches(w *jute.SetWatches) {
	for _, list := range [][]string{w.Data, w.Exist, w.Child, w.Persistent, w.Recursive} {
		m.paths = append(m.paths, list...)
	}
}

// frameLength reads the length in front of a frame.
func frameLength(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }

// isFourLetterWord tells whether the first bytes of a client are a command for people. As a length they would
// be out of bounds.
func isFourLetterWord(b []byte) bool {
	for _, c := range b {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
