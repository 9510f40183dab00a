package wire

import (
	"context"
	"io"
	"time"
)

// seekQuorum looks for a server with a quorum while l is a connection to one without, and ends l when it has found
// one: the library then connects again, and the servers that are tried include the one found.
func (c *Conn) seekQuorum(l *link) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-c.ctx.Done():
			t.Stop()
			return
		}
		c.mu.Lock()
		gone := l.dead || c.link != l
		c.mu.Unlock()
		if gone {
			return
		}
		for _, server := range c.hosts.list() {
			if server != l.address && c.hasQuorum(server) {
				c.hosts.prefer(server)
				l.cut()
				return
			}
		}
	}
}

// hasQuorum asks a server with the four-letter word that is for this.
func (c *Conn) hasQuorum(server string) bool {
	ctx, cancel := context.WithTimeout(c.ctx, minPatience)
	defer cancel()
	nc, err := c.cfg.Dial(ctx, "tcp", server)
	if err != nil {
		return false
	}
	defer nc.Close()                                          //nolint:errcheck // nothing is lost
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })() // it is mute, or nobody wants to know any more
	if _, err := io.WriteString(nc, "isro"); err != nil {
		return false
	}
	answer, _ := io.ReadAll(io.LimitReader(nc, 16))
	return string(answer) == "rw"
}
