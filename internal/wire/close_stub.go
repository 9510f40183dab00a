package wire

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// closeStub replaces the server when the library is closed without a connection: it grants a session and answers the
// close request. Otherwise the library's Close would wait a second for an answer.
type closeStub struct {
	once        sync.Once
	replies     chan []byte
	closed      chan struct{}
	current     []byte
	connectSeen bool
}

// dialCloseStub returns a connection to a new closeStub.
func (c *Conn) dialCloseStub() net.Conn {
	f := &closeStub{replies: make(chan []byte, 4), closed: make(chan struct{})}
	f.replies <- sized(jute.AppendConnectResponse(make([]byte, 4), &jute.ConnectResponse{
		TimeoutMs: int32(c.cfg.SessionTimeout / time.Millisecond), SessionID: 1, Password: make([]byte, 16),
	}))
	c.stubOnce.Do(func() { close(c.stubDialed) })
	return f
}

func (f *closeStub) Write(p []byte) (int, error) {
	if !f.connectSeen {
		f.connectSeen = true
		return len(p), nil
	}
	h, _, err := jute.DecodeRequestHeader(p[4:])
	if err != nil {
		return 0, err
	}
	select {
	case f.replies <- sized(jute.AppendReplyHeader(make([]byte, 4), jute.ReplyHeader{Xid: h.Xid})):
		return len(p), nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

func (f *closeStub) Read(p []byte) (int, error) {
	if len(f.current) == 0 {
		select {
		case f.current = <-f.replies:
		case <-f.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, f.current)
	f.current = f.current[n:]
	return n, nil
}

func (f *closeStub) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *closeStub) LocalAddr() net.Addr              { return nil }
func (f *closeStub) RemoteAddr() net.Addr             { return nil }
func (f *closeStub) SetDeadline(time.Time) error      { return nil }
func (f *closeStub) SetReadDeadline(time.Time) error  { return nil }
func (f *closeStub) SetWriteDeadline(time.Time) error { return nil }
