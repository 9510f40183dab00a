package wire

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// follow leaves l when its server is not in the list any more: it moves the session to another server, as soon as one
// accepts. mu is not held.
func (c *Conn) follow(l *link) {
	servers, version := c.hosts.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.link != l || l.dead || c.readOnly || slices.Contains(servers, l.address) {
		return
	}
	c.wg.Go(func() { c.move(l, version) }) // the session continues: the flusher still runs, and finish waits for both
}

// move looks for another server in this version of the list for the session of l. It does nothing if the list has the
// server of l under another name.
func (c *Conn) move(l *link, version int) {
	here := c.targetOf(l).address
	if remote := l.RemoteAddr(); remote != nil {
		here = remote.String()
	}
	if c.cfg.Order != nil {
		servers, newest := c.hosts.list()
		c.orderList(servers, newest)
	}
	known := slices.ContainsFunc(c.targets(), func(t target) bool { return t.address == here })
	if known || !c.hosts.isCurrent(version) {
		return
	}
	c.seek(l, 0, func() bool { return !c.hosts.isCurrent(version) }, c.serves)
}

// strangeSession is a session id that no server grants.
const strangeSession = 1

// serves reports whether a server would accept the session. It requests a session that does not exist. A server that
// serves, and has our newest zxid, refuses it; any other closes the connection or does not answer. Nothing is written.
func (c *Conn) serves(ctx context.Context, t target) bool {
	nc, err := c.connect(ctx, t)
	if err != nil {
		return false
	}
	defer nc.Close()                                          //nolint:errcheck // nothing is lost
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })() // no answer, or no need for one
	if _, err := nc.Write(sized(jute.AppendConnectRequest(make([]byte, 4), &jute.ConnectRequest{
		LastZxidSeen: c.zxid.Load(), TimeoutMs: int32(c.SessionTimeout() / time.Millisecond),
		SessionID: strangeSession, Password: make([]byte, jute.PasswordSize), HasReadOnly: true,
	}))); err != nil {
		return false
	}
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return false
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > libraryBuffer {
		return false
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(nc, frame); err != nil {
		return false
	}
	_, err = jute.DecodeConnectResponse(frame)
	return err == nil
}
