package zkserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// conn is a connection of a client to a member.
type conn struct {
	member *Member
	nc     net.Conn
	number int64 // number of the connection in the service, in order of arrival
	out    *outbox

	// The mutex of the service guards the fields below.
	ids       identities
	login     login
	session   *session // nil before the handshake
	leaving   bool     // the client has requested the end of the session
	waiting   [][]byte // frames that need the leader while the member is cut off, and all later frames
	received  int64
	sent      int64
	last      lastAnswer
	began     time.Time
	lastFrame time.Time
}

// loopback is the identity of every client in the scheme ip. Only local clients reach the service.
const loopback = "127.0.0.1"

func newConn(m *Member, nc net.Conn, number int64, ids identities) *conn {
	now := m.service.now()
	return &conn{
		member:    m,
		nc:        nc,
		number:    number,
		out:       newOutbox(),
		ids:       ids,
		began:     now,
		lastFrame: now,
	}
}

// serve reads and answers until the connection ends. Then it sends the remaining frames, unless the connection was
// closed by hangUp.
func (c *conn) serve() {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.out.send(c.nc)
		c.nc.Close() //nolint:errcheck // the connection has ended already
	}()
	c.readFrames(bufio.NewReader(c.nc))
	s := c.member.service
	s.mu.Lock()
	c.forget()
	s.mu.Unlock()
	c.out.finish()
	<-sent
}

// readFrames reads and answers frames until a frame cannot be read, or is the last one.
func (c *conn) readFrames(r *bufio.Reader) {
	var size [4]byte
	var frame []byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return
		}
		if first && c.command(string(size[:]), r) {
			return
		}
		n := int(int32(binary.BigEndian.Uint32(size[:])))
		if n < 0 || n > c.member.service.config.MaxRequest {
			return
		}
		if cap(frame) < n {
			frame = make([]byte, n)
		}
		frame = frame[:n]
		if _, err := io.ReadFull(r, frame); err != nil {
			return
		}
		if !c.handle(frame) {
			return
		}
	}
}

// handle handles a frame. It returns false after the last frame of the connection.
func (c *conn) handle(frame []byte) bool {
	s := c.member.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.member.open() || !c.connected() {
		return false
	}
	defer s.announce()
	c.received++
	c.member.received++
	c.lastFrame = s.now()
	switch {
	case c.session != nil:
		return c.request(frame)
	case len(c.waiting) > 0: // the handshake waits
		c.wait(frame, false)
		return true
	}
	return c.handshake(frame)
}

// answerFrame answers a frame that has waited. It returns false after the last frame of the connection.
func (c *conn) answerFrame(frame []byte) bool {
	if c.session == nil {
		return c.handshake(frame)
	}
	return c.dispatch(frame, c.answerRequest)
}

// connected reports whether the connection is open.
func (c *conn) connected() bool {
	_, ok := c.member.conns[c]
	return ok
}

// hangUp closes the connection at once.
func (c *conn) hangUp() {
	c.forget()
	c.out.drop()
	c.nc.Close() //nolint:errcheck // the reader ends with or without an error
}

// forget removes the connection and its watches from the member: it gets no further event.
func (c *conn) forget() {
	defer c.member.service.announce()
	delete(c.member.conns, c)
	c.member.dataWatches.forget(c)
	c.member.childWatches.forget(c)
}

func (c *conn) count() {
	c.sent++
	c.member.sent++
}

// reply sends the answer to a request.
func (c *conn) reply(h jute.ReplyHeader, op jute.Op, body *jute.Reply) {
	c.count()
	c.out.add(func(b []byte) []byte {
		b = jute.AppendReplyHeader(b, h)
		if h.Code == jute.CodeOK && body != nil {
			b = jute.AppendReply(b, op, body)
		}
		return b
	})
}

// undated is the zxid of notifications in versions that send none, and of events that the client has missed.
const undated = -1

// notify sends a watch event of the last transaction.
func (c *conn) notify(path string, event zk.EventType) {
	zxid := int64(undated)
	if c.member.service.config.Version.dated() {
		zxid = c.member.tree.applied
	}
	c.notifyAt(zxid, path, event)
}

// notifyAt sends a watch event with a zxid.
func (c *conn) notifyAt(zxid int64, path string, event zk.EventType) {
	c.count()
	c.out.add(func(b []byte) []byte {
		b = jute.AppendReplyHeader(b, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: zxid})
		return jute.AppendWatcherEvent(b, &jute.WatcherEvent{Type: event, State: syncConnected, Path: path})
	})
}

// syncConnected is KeeperState.SyncConnected of Java.
const syncConnected zk.State = 3

// appendFrame appends a frame; fill writes its content.
func appendFrame(b []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = fill(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}
