package wire

import (
	"context"
	"fmt"
	"io"
	"time"
)

// seekQuorum looks for a server with a quorum while l is a connection to one without.
func (c *Conn) seekQuorum(l *link) {
	c.seek(l, minSeekPause, func() bool { return false }, c.hasQuorum)
}

// hasQuorum reports whether a server has a quorum, by a four-letter word.
func (c *Conn) hasQuorum(ctx context.Context, t target) bool {
	nc, err := c.connect(ctx, t)
	if err != nil {
		return false
	}
	defer nc.Close()                                          //nolint:errcheck // nothing is lost
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })() // no answer, or no need for one
	if _, err := io.WriteString(nc, "isro"); err != nil {
		return false
	}
	answer, _ := io.ReadAll(io.LimitReader(nc, 16))
	return string(answer) == "rw"
}

const (
	minSeekPause = 100 * time.Millisecond
	maxSeekPause = 10 * time.Second
)

// seek looks for a server that accepts while l stands, first after a pause, and ends l when it has found one: the
// library then connects to that server. It gives up when enough returns true.
func (c *Conn) seek(l *link, pause time.Duration, enough func() bool, accepts func(context.Context, target) bool) {
	for ; ; pause = min(max(2*pause, minSeekPause), maxSeekPause) {
		if sleep(c.ctx, pause) != nil {
			return
		}
		for _, t := range c.targets() {
			if c.isOver(l) || enough() {
				return
			}
			if t == c.targetOf(l) {
				continue
			}
			ctx, cancel := context.WithTimeout(c.ctx, minPatience)
			accepted := accepts(ctx, t)
			cancel()
			if accepted && !enough() && !c.isOver(l) { // a close in between needs the connection
				c.hosts.prefer(t)
				l.end(fmt.Errorf("left for %s", t.name()))
				return
			}
		}
		if c.isOver(l) || enough() {
			return
		}
	}
}

// isOver reports whether l is no longer the connection of c.
func (c *Conn) isOver(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.dead || c.link != l || c.end != nil
}

// targets returns all addresses of all servers, except those whose names cannot be resolved now.
func (c *Conn) targets() (all []target) {
	servers, _ := c.hosts.list()
	for _, server := range servers {
		ctx, cancel := context.WithTimeout(c.ctx, minPatience)
		addresses, err := c.resolve(ctx, server)
		cancel()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			all = append(all, target{server, a})
		}
	}
	return all
}

// targetOf returns the target of the connection l.
func (c *Conn) targetOf(l *link) target {
	if a, ok := l.Conn.(*attempt); ok {
		return a.target
	}
	return target{server: l.address, address: l.address}
}
