package wire

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Some servers and proxies end the connection at a request that they do not know, or that is too large, instead of an
// answer. Sent again on each connection, it would end them all, and nothing else would get through.
//
// Of all requests that are in flight when a server ends the connection, any may be the reason. So one that was in
// flight then on some connections in a row goes alone from then on: nothing is in flight beside it. If it is not the
// reason, it is answered. If the connection ends at it again, it is. The kind of such a request is one that the servers
// lack, if there are servers without it, and is left out for a time that grows.
const (
	fewUnclear  = 2  // number of connections in a row, from which on a request, or an optional kind, goes alone
	fewHangUps  = 3  // number from which on a kind is left out, if the servers have never answered a request of it
	manyHangUps = 10 // if they have: more likely the servers are ill. A request with as many keeps no order
	minLeftOut  = time.Second
	maxLeftOut  = 5 * time.Minute
)

// maxEnders bounds how many requests are known that end connections.
const maxEnders = 100

// ender is a request of the program, by kind and path, at which the servers end the connection. The program may send it
// again and again.
type ender struct {
	op   jute.Op
	path string
}

// hangUp says what is known of a kind of request at which servers may have ended connections since they answered one.
type hangUp struct {
	connections int       // in a row, with such a request in flight
	path        string    // of the first request at which one ended with nothing else in flight
	isOfMany    bool      // and one at a request of another path
	unsentUntil time.Time // no request of the kind is sent before; zero if the servers may know it
	err         error     // the error of such a request
}

// isOptional reports whether there are servers without this kind of request, for which callers are prepared. All others
// are as old as the protocol: then the request at hand is the reason, or the server is ill.
func isOptional(op jute.Op) bool {
	switch op {
	case jute.OpCreateContainer, jute.OpCreateTTL, jute.OpMultiRead, jute.OpAddWatch, jute.OpSetWatches2,
		jute.OpRemoveWatches, jute.OpCheckWatches, jute.OpReconfig, jute.OpGetEphemerals, jute.OpGetAllChildrenNumber,
		jute.OpWhoAmI:
		return true
	}
	return false
}

// isHangUp reports whether the other end has ended a connection, without an error of this one.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// hungUp records that a server has ended a connection with a request of this kind in flight, alone or beside others;
// path is that of a request that was alone. It returns what is known of the kind, and whether it has just become one
// that the servers lack.
func (h *Hosts) hungUp(op jute.Op, alone bool, path string, why error) (u hangUp, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.hangUps[op]
	if k == nil {
		k = new(hangUp)
		h.setHangUp(op, k)
	}
	k.connections++
	switch {
	case !alone:
	case k.path == "":
		k.path = path
	case k.path != path:
		k.isOfMany = true
	}
	limit, ofRequest := fewHangUps, !isOptional(op)
	if h.answers[op] {
		limit = manyHangUps
		// A create without its kind fails, or makes another node. The servers know the kind: rather they refuse one node.
		ofRequest = ofRequest || !k.isOfMany && (op == jute.OpCreateContainer || op == jute.OpCreateTTL)
	}
	switch {
	case k.connections < limit, !alone:
	case !ofRequest:
		isNew = k.unsentUntil.IsZero()
		k.unsentUntil = time.Now().Add(min(minLeftOut<<min(k.connections-limit, maxDoubling), maxLeftOut))
		k.err = fmt.Errorf("%w: the servers have ended %d connections in a row at a request of the kind %s, the last %w",
			jute.ErrUnimplemented, k.connections, op, why)
	default:
		h.repeats = k.connections - limit + 1
	}
	return *k, isNew
}

// answered records an answer to a request of this kind.
func (h *Hosts) answered(op jute.Op) {
	if !isOptional(op) && !h.anyHangUp.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if isOptional(op) {
		if h.answers == nil {
			h.answers = make(map[jute.Op]bool)
		}
		h.answers[op] = true
	}
	if h.hangUps[op] != nil {
		delete(h.hangUps, op)
		h.repeats = 0
		h.anyHangUp.Store(len(h.hangUps) > 0)
	}
}

// refused records that the servers do not know this kind of request. Some end the connection behind that answer, and
// with it what is sent in place of the request: the next try must not send it again.
func (h *Hosts) refused(op jute.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setHangUp(op, &hangUp{unsentUntil: time.Now().Add(maxLeftOut), err: jute.ErrUnimplemented})
}

// lacks returns the error of a request of this kind if it is not to be sent now.
func (h *Hosts) lacks(op jute.Op) error {
	if !h.anyHangUp.Load() || !isOptional(op) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.hangUps[op]; k != nil && time.Now().Before(k.unsentUntil) {
		return k.err
	}
	return nil
}

// goesAlone reports whether nothing may be in flight beside a request of this kind: it may end the connection.
func (h *Hosts) goesAlone(op jute.Op) bool {
	if !h.anyHangUp.Load() || !isOptional(op) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.hangUps[op]
	return k != nil && k.connections >= fewUnclear && !time.Now().Before(k.unsentUntil)
}

// hasHungUp reports whether a server may have ended a connection at this kind of request, since one was answered.
func (h *Hosts) hasHungUp(op jute.Op) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hangUps[op] != nil
}

// suspect records that a server has ended a connection at this kind of request, or at one behind it.
func (h *Hosts) suspect(op jute.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hangUps[op] == nil {
		h.setHangUp(op, new(hangUp))
	}
}

// setHangUp begins to count the connections that end at a kind of request. mu is held.
func (h *Hosts) setHangUp(op jute.Op, k *hangUp) {
	if h.hangUps == nil {
		h.hangUps = make(map[jute.Op]*hangUp)
	}
	h.hangUps[op] = k
	h.anyHangUp.Store(true)
}

// watchesAnswered records that the watches are set again, and sends the requests that waited for it.
func (l *link) watchesAnswered() {
	c := l.c
	c.hosts.answered(l.watchesOp)
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.watchesFirst {
		l.watchesFirst = false
		l.refilled()
	}
}

// goesAlone reports whether nothing may be in flight beside r. mu is held.
func (l *link) goesAlone(r *Request) bool {
	return r.hangUps >= fewUnclear || l.c.hosts.goesAlone(r.Op)
}

// noteEnder records that servers have ended many connections at r. A transaction has no path, and is not known again.
func (h *Hosts) noteEnder(r *Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.enders, func(_ ender, at time.Time) bool { return time.Since(at) >= maxLeftOut })
	if r.Path == "" || len(h.enders) >= maxEnders {
		return
	}
	if h.enders == nil {
		h.enders = make(map[ender]time.Time)
	}
	h.enders[ender{r.Op, r.Path}] = time.Now()
	h.anyEnder.Store(true)
}

// forgetEnder records that r has an answer.
func (h *Hosts) forgetEnder(r *Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.enders, ender{r.Op, r.Path})
	h.anyEnder.Store(len(h.enders) > 0)
}

// isEnder reports whether servers have ended many connections at a request like r, a short time ago.
func (h *Hosts) isEnder(r *Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.enders[ender{r.Op, r.Path}]
	return ok && time.Since(at) < maxLeftOut
}

// forgetHangUps forgets what is known of the servers. mu is held.
func (h *Hosts) forgetHangUps() {
	h.hangUps, h.answers, h.repeats, h.enders = nil, nil, 0, nil
	h.anyHangUp.Store(false)
	h.anyEnder.Store(false)
}

// suspects counts the hang-up for each request in flight, and returns their kinds. alone reports whether there is one
// request, and path is its path. Heartbeats are no suspects: they go beside any request, and have been answered. mu is
// held.
func (l *link) suspects() (kinds []jute.Op, alone bool, path string) {
	requests := 0
	for i := range l.flight.len() {
		r := l.flight.at(i)
		if _, isHeartbeat := r.Handler.(heartbeat); r.replaced || isHeartbeat {
			continue
		}
		requests++
		path = r.Path
		if r.hangUps < manyHangUps {
			r.hangUps++
		}
		if r.EndsConnections() {
			l.c.hosts.noteEnder(r)
		}
		if !slices.Contains(kinds, r.Op) {
			kinds = append(kinds, r.Op)
		}
	}
	return kinds, requests == 1, path
}

// noteHangUp records at which kinds of requests the server may have ended the connection, if it did. If that was before
// the watches were set again, it may be their request or one behind it: the next connection sends them alone.
func (l *link) noteHangUp() {
	c := l.c
	a, ok := l.Conn.(*attempt)
	if !ok || c.ctx.Err() != nil {
		return
	}
	why := a.failure("connection lost")
	if !isHangUp(why) {
		return
	}
	c.mu.Lock()
	kinds, alone, path := []jute.Op{l.watchesOp}, true, ""
	switch {
	case l.settingWatches == 0:
		kinds, alone, path = l.suspects()
	case l.flight.len() > l.heartbeats:
		c.mu.Unlock()
		c.hosts.suspect(l.watchesOp)
		return
	}
	c.mu.Unlock()
	for _, op := range kinds {
		if !alone && !isOptional(op) { // the request goes alone next, and not its kind
			continue
		}
		u, isNew := c.hosts.hungUp(op, alone, path, why)
		if isNew {
			c.cfg.Logger.LogAttrs(c.ctx, slog.LevelWarn, "a kind of request ends the connections",
				slog.String("kind", op.String()), slog.Int("connections", u.connections), slog.Any("error", why))
		}
		if op == jute.OpSetWatches2 && u.err != nil { // the next connection sets the other watches
			c.endPersistentWatches()
		}
	}
}
