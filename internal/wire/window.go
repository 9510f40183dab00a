package wire

import (
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// A request is answered behind all that was sent before it, pings included, and the session clock counts from when the
// last answered request was sent. So the age of answers has to stay well below the session timeout, however slow the
// server is. Nobody knows beforehand how long a request takes it: each kind of request has a window, which begins small,
// opens while answers come fast, and closes when they get old.

const (
	// maxInFlight bounds all windows together.
	maxInFlight = 4096

	// A window begins with as many requests as the server may answer within the session timeout if each takes it that
	// long.
	slowRequest        = 200 * time.Millisecond
	minWindow          = 8
	maxInitialWindow   = 512
	comfortableAge     = 50 * time.Millisecond // a window opens as long as answers are younger, on any network
	windowForgottenFor = time.Second           // without a request of its kind, a window begins anew
)

// window bounds how many requests of a kind are in flight.
type window struct {
	limit    int
	inFlight int
	fastest  int64 // the least age of an answer so far, in ns
	last     int64 // when the last answer was read
}

// windows are those of a connection. Its times are ns since Conn.epoch.
type windows struct {
	byKind  [32]window
	initial int
	easy    int64 // the age below which a window may open on a slow network
	old     int64 // the age above which nothing is sent, and windows close
}

// newWindows returns the windows for a session timeout.
func newWindows(timeout time.Duration) windows {
	return windows{
		initial: min(max(int(timeout/slowRequest), minWindow), maxInitialWindow),
		easy:    int64(timeout / 6),
		old:     int64(timeout / 3),
	}
}

// of returns the window of a kind of request. Kinds that share one are rare.
func (ws *windows) of(op jute.Op) *window { return &ws.byKind[uint32(op)%uint32(len(ws.byKind))] }

// admits reports whether a request of that kind may be sent; oldest is when the oldest in flight was.
func (ws *windows) admits(op jute.Op, now, oldest int64) bool {
	w := ws.of(op)
	if w.inFlight == 0 && (w.limit == 0 || now-w.last > int64(windowForgottenFor)) {
		*w = window{limit: ws.initial, last: now}
	}
	return w.inFlight < w.limit && now-oldest < ws.old
}

// sent counts a request.
func (ws *windows) sent(op jute.Op) { ws.of(op).inFlight++ }

// answered counts an answer that was read now and learns from its age.
func (ws *windows) answered(op jute.Op, age, now int64) {
	w := ws.of(op)
	busy := 2*w.inFlight > w.limit
	w.inFlight--
	w.last = now
	if w.fastest == 0 || age < w.fastest {
		w.fastest = max(age, 1)
	}
	switch {
	case age > ws.old:
		w.limit = min(w.limit, max(w.inFlight, ws.initial))
	case busy && age <= min(max(2*w.fastest, int64(comfortableAge)), ws.easy):
		w.limit = min(w.limit+1, maxInFlight)
	}
}
