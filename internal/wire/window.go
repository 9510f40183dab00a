package wire

import (
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// The server answers a request after all earlier ones, pings included, and the session clock counts from the time at
// which the last answered request was sent. So the age of answers must stay well below the session timeout, however
// slow the server is, and also if the next requests of a kind take a hundred times as long as those before. So the
// number of requests in flight is bounded: each kind of request has a window. It begins small, and opens as long as
// answers are young, or come faster for it. Old answers close it.

const (
	// maxInFlight bounds all windows together.
	maxInFlight = 4096

	// A window begins with as many requests as the server may answer within the session timeout if each takes it that
	// long.
	slowRequest      = 2 * time.Second
	minWindow        = 2
	maxInitialWindow = 16

	maxYoung           = 300 * time.Millisecond
	windowForgottenFor = time.Second // without a request of its kind, a window begins anew
	probePause         = 250 * time.Millisecond
	openingRounds      = 2 // one round opens the window, the next measures the effect
)

// window bounds the number of requests of a kind in flight.
type window struct {
	limit    int
	inFlight int
	last     int64 // when the last answer was read

	// A round lasts until the answer to a request that was sent in it.
	round    int64 // when the round began
	answers  int   // number of answers in the round
	rate     int64 // the highest number of answers in a second of a round
	opening  int   // number of rounds left of a try to open the window further
	before   int   // the limit when that try began
	attempts int64 // when the last such try ended
}

// windows has the windows of a connection. Times are in ns since Conn.epoch.
type windows struct {
	byKind  [32]window
	initial int
	young   int64 // a window opens after an answer of at most this age
	easy    int64 // a window may open after an answer of at most this age if the rate grows
	old     int64 // above this age nothing is sent, and windows close
}

// newWindows returns the windows for a session timeout.
func newWindows(timeout time.Duration) windows {
	return windows{
		initial: min(max(int(timeout/slowRequest), minWindow), maxInitialWindow),
		// A long timeout has more to spare, and larger windows mean larger writes: a third of a second in a minute.
		young: int64(min(max(timeout/800, time.Duration(float64(timeout)*timeout.Seconds()/12_000)), maxYoung)),
		easy:  int64(timeout / 12),
		old:   int64(timeout / 8),
	}
}

// of returns the window of a kind of request. Kinds that share one are rare.
func (ws *windows) of(op jute.Op) *window { return &ws.byKind[uint32(op)%uint32(len(ws.byKind))] }

// admits reports whether a request of that kind may be sent. oldest is the time of the oldest request in flight.
func (ws *windows) admits(op jute.Op, now, oldest int64) bool {
	w := ws.of(op)
	if w.inFlight == 0 && (w.limit == 0 || now-w.last > int64(windowForgottenFor)) {
		*w = window{limit: ws.initial, last: now, round: now, opening: openingRounds, before: ws.initial}
	}
	return w.inFlight < w.limit && now-oldest < ws.old
}

// sent counts a request.
func (ws *windows) sent(op jute.Op) { ws.of(op).inFlight++ }

// answered counts an answer that was read now, and adjusts the window to its age.
func (ws *windows) answered(op jute.Op, age, now int64) {
	w := ws.of(op)
	busy := 2*w.inFlight > w.limit
	w.inFlight--
	w.last = now
	w.answers++
	switch {
	case age > ws.old:
		w.limit = max(min(w.limit, w.inFlight)/2, 1)
		w.opening, w.attempts = 0, now
	case busy && (age <= ws.young || w.opening == openingRounds && age <= ws.easy):
		w.limit = min(w.limit+1, maxInFlight)
	}
	if now-age >= w.round {
		w.endRound(busy, age <= ws.young, now)
	}
}

// endRound checks whether more answers have come than in the rounds before.
func (w *window) endRound(busy, young bool, now int64) {
	rate := int64(w.answers) * int64(time.Second) / max(now-w.round, 1)
	switch {
	case rate > w.rate+w.rate/4: // the window was too small, and perhaps still is
		w.rate, w.before = rate, w.limit
		if busy {
			w.opening = openingRounds
		}
	case w.opening > 1:
		w.opening--
	case w.opening == 1:
		w.opening, w.attempts = 0, now
		if !young {
			w.limit = min(w.limit, w.before)
		}
	case busy && now-w.attempts > max(int64(probePause), 4*(now-w.round)):
		w.rate, w.opening, w.before = min(w.rate, rate), openingRounds, w.limit
	}
	w.round, w.answers = now, 0
}
