package curatortest

import (
	"encoding/binary"

	"github.com/gocurator/curator/internal/jute"
)

// KillSession makes the client of a session find it expired: its connections end, and when it comes back it gets
// the answer that the session is gone. The server does not learn of that: the ephemeral nodes stay until the session
// times out. In Java: KillSession.
func (f *Faults) KillSession(sessionID int64) {
	f.mu.Lock()
	if f.killed == nil {
		f.killed = map[int64]struct{}{}
	}
	f.killed[sessionID] = struct{}{}
	f.mu.Unlock()
	f.Cut(sessionID)
}

func (f *Faults) isKilled(sessionID int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.killed[sessionID]
	return ok
}

// Where the frame of a handshake has the session.
const (
	sessionStart = lengthSize + 4 + 8 + 4
	sessionEnd   = sessionStart + 8
)

// nobodysSession is a session that no server has started.
const nobodysSession = ^uint64(0)

// askForNobody makes a handshake ask for a session that is not there, which a server answers as it does one that has
// expired.
func askForNobody(frame []byte) {
	if _, err := jute.DecodeConnectRequest(frame[lengthSize:]); err == nil {
		binary.BigEndian.PutUint64(frame[sessionStart:sessionEnd], nobodysSession)
	}
}
