package curatortest

import (
	"encoding/binary"

	"github.com/gocurator/curator/internal/jute"
)

// KillSession lets the client of a session find it expired. Its connections end, and when it reconnects it gets the
// answer that the session has expired. The server has no part in this: the ephemeral nodes stay until the session times
// out. In Java: KillSession.
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

// The place of the session in the frame of a handshake.
const (
	sessionStart = lengthSize + 4 + 8 + 4
	sessionEnd   = sessionStart + 8
)

// unknownSession is a session that no server has started.
const unknownSession = ^uint64(0)

// requestUnknownSession replaces the session of a handshake by one that does not exist. A server answers as for an
// expired one.
func requestUnknownSession(frame []byte) {
	if _, err := jute.DecodeConnectRequest(frame[lengthSize:]); err == nil {
		binary.BigEndian.PutUint64(frame[sessionStart:sessionEnd], unknownSession)
	}
}
