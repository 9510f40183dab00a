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
	manyHangUps = 10 // if they have: more likely the servers are ill
	minUnsent   = time.Second
	maxUnsentAt = 5 * time.Minute
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
	if h.hangUps == nil {
		h.hangUps = make(map[jute.Op]*hangUp)
	}
	k := h.hangUps[op]
	if k == nil {
		k = new(hangUp)
		h.hangUps[op] = k
		h.anyHangUp.Store(true)
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
		k.unsentUntil = time.Now().Add(min(minUnsent<<min(k.connections-limit, maxDoubling), maxUnsentAt))
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

// blame returns the kind of request at which the server may have ended the connection: the oldest one in flight, unless
// one behind it is of a kind that servers may lack and have not answered yet. Some servers do not answer what came
// before the request that they do not know. mu is held.
func (l *link) blame() (op jute.Op, ok bool) {
	if l.settingWatches > 0 {
		return l.watchesOp, true // it was sent before all requests
	}
	for i := range l.flight.len() {
		r := l.flight.at(i)
		if r.Err != nil { // another request was sent in its place
			continue
		}
		if !ok {
			op, ok = r.Op, true
		}
		if isOptional(r.Op) && !l.c.hosts.hasAnswered(r.Op) {
			return r.Op, true
		}
	}
	return op, ok
}

// noteHangUp records at which kind of request the server has ended the connection, if it did.
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
	op, ok := l.blame()
	c.mu.Unlock()
	if !ok {
		return
	}
	u, isNew := c.hosts.hungUp(op, why)
	if isNew {
		c.cfg.Logger.LogAttrs(c.ctx, slog.LevelWarn, "a kind of request ends the connections", slog.String("kind", op.String()),
			slog.Int("connections", u.connections), slog.Any("error", why))
	}
	if op == jute.OpSetWatches2 && u.err != nil { // the next connection sets the other watches
		c.endPersistentWatches()
	}
}
