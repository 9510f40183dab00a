package wire

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Some servers and proxies end the connection at a kind of request that they do not know, instead of an answer. Sent
// again on each connection, it would end them all, and nothing else would get through. After some connections in a row
// that ended so, the client takes the kind for one that the servers lack, for a time that grows.
const (
	fewHangUps  = 3  // number of connections in a row, if the servers have never answered a request of the kind
	manyHangUps = 10 // if they have: more likely the servers are ill. A request with as many keeps no order
	minLeftOut  = time.Second
	maxLeftOut  = 5 * time.Minute
)

// hangUp says what is known of a kind of request at which servers have ended connections since they answered one.
type hangUp struct {
	connections int       // in a row
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

// hungUp records that a server has ended a connection instead of the answer to a request of this kind. It returns what
// is known of the kind, and whether it has just become one that the servers lack.
func (h *Hosts) hungUp(op jute.Op, why error) (u hangUp, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.hangUps[op]
	if k == nil {
		k = new(hangUp)
		h.setHangUp(op, k)
	}
	k.connections++
	limit := fewHangUps
	if h.answers[op] {
		limit = manyHangUps
	}
	switch {
	case k.connections < limit:
	case isOptional(op):
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

// hasAnswered reports whether the servers have answered a request of this kind.
func (h *Hosts) hasAnswered(op jute.Op) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers[op]
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

// blame returns the kind of request at which the server may have ended the connection, and the request: the oldest one
// in flight, unless one behind it is of a kind that servers may lack and have not answered yet. Some servers do not
// answer what came before the request that they do not know. Without a request it is the kind that sets the watches
// again. mu is held.
func (l *link) blame() (op jute.Op, blamed *Request, ok bool) {
	if l.settingWatches > 0 && l.flight.len() == 0 {
		return l.watchesOp, nil, true
	}
	for i := range l.flight.len() {
		r := l.flight.at(i)
		if r.replaced {
			continue
		}
		if blamed == nil {
			blamed = r
		}
		if isOptional(r.Op) && !l.c.hosts.hasAnswered(r.Op) {
			return r.Op, r, true
		}
	}
	if blamed == nil {
		return op, nil, false
	}
	return blamed.Op, blamed, true
}

// noteHangUp records at which kind of request the server has ended the connection, if it did. If that was before the
// watches were set again, it may be their request or one behind it: the next connection sends them alone.
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
	op, blamed, ok := l.blame()
	mayBeWatches := l.settingWatches > 0 && blamed != nil
	if blamed != nil && !mayBeWatches && blamed.hangUps < manyHangUps {
		blamed.hangUps++
	}
	c.mu.Unlock()
	switch {
	case !ok:
		return
	case mayBeWatches:
		c.hosts.suspect(l.watchesOp)
		return
	}
	u, isNew := c.hosts.hungUp(op, why)
	if isNew {
		c.cfg.Logger.LogAttrs(c.ctx, slog.LevelWarn, "a kind of request ends the connections",
			slog.String("kind", op.String()), slog.Int("connections", u.connections), slog.Any("error", why))
	}
	if op == jute.OpSetWatches2 && u.err != nil { // the next connection sets the other watches
		c.endPersistentWatches()
	}
}
