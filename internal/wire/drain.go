package wire

import "github.com/gocurator/curator/internal/jute"

// drain completes the requests in flight on a dead connection with connection loss, in order, and then gives back the
// unsent ones. Until it returns nothing is sent on the next connection.
func (l *link) drain() {
	c := l.c
	for _, r := range l.arrived { // an earlier answer could not be read
		r.Err = jute.ErrConnectionLoss
		r.Handler.Answered(r)
	}
	l.arrived = nil
	for {
		c.mu.Lock()
		l.dead = true
		r := l.flight.pop()
		if r == nil {
			break // with mu
		}
		if concernsWatches(r) {
			c.watches.ended(r, r.serverPath(c))
		}
		c.mu.Unlock()
		r.Err = jute.ErrConnectionLoss
		r.Handler.Answered(r)
	}
	unsent := l.takeUnsent()
	wasLinked := c.link == l
	if wasLinked {
		c.link, c.watches.traffic = nil, traffic{}
	}
	l.out, l.spare = nil, nil
	l.settle()
	c.mu.Unlock()
	if wasLinked || len(unsent) > 0 {
		c.cfg.OnUnsent(unsent)
	}
}

// takeUnsent takes back the requests that are not encoded. Conn.mu is held.
func (l *link) takeUnsent() []*Request {
	unsent := l.waiting.takeAll()
	for _, r := range unsent {
		if concernsWatches(r) {
			l.c.watches.withdrawn(r, r.serverPath(l.c))
		}
	}
	l.settle()
	return unsent
}
