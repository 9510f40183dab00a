package zkserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// client is a connection to a member with a session.
type client struct {
	net.Conn
	r       *bufio.Reader
	timeout time.Duration
}

// newClient connects and shakes hands.
func newClient(tb testing.TB, m *Member) *client {
	tb.Helper()
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		m.Serve(far)
	}()
	tb.Cleanup(func() {
		near.Close() //nolint:errcheck // the server may have closed it
		<-served
	})
	c := &client{Conn: near, r: bufio.NewReader(near)}
	c.write(tb, jute.AppendConnectRequest(nil, &jute.ConnectRequest{TimeoutMs: 1000, Password: make([]byte, jute.PasswordSize)}))
	answer, err := jute.DecodeConnectResponse(c.read(tb))
	if err != nil || answer.SessionID == 0 {
		tb.Fatalf("handshake: %+v, %v", answer, err)
	}
	c.timeout = time.Duration(answer.TimeoutMs) * time.Millisecond
	return c
}

func (c *client) write(tb testing.TB, body []byte) {
	tb.Helper()
	if _, err := c.Write(appendFrame(nil, func(b []byte) []byte { return append(b, body...) })); err != nil {
		tb.Fatal(err)
	}
}

func (c *client) read(tb testing.TB) []byte {
	tb.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		tb.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.r, b); err != nil {
		tb.Fatal(err)
	}
	return b
}

// ping fails if the server does not answer.
func (c *client) ping(tb testing.TB) {
	tb.Helper()
	c.write(tb, jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidPing, Op: jute.OpPing}))
	for {
		h, _, err := jute.DecodeReplyHeader(c.read(tb))
		if err != nil {
			tb.Fatal(err)
		}
		if h.Xid == jute.XidPing {
			return
		}
	}
}

// FuzzConnection has a client send anything: as what comes first, as a frame, or as the body of any operation. Whatever
// becomes of its own connection, others are served.
func FuzzConnection(f *testing.F) {
	f.Add(byte(0), int32(0), []byte("ruok"))
	f.Add(byte(0), int32(0), []byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(byte(0), int32(0), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(byte(1), int32(0), []byte{0, 0, 0, 1, 0, 0, 0, 14})
	for op := jute.OpCloseSession; op <= jute.OpWhoAmI; op++ {
		for _, body := range [][]byte{
			{},
			{0, 0, 0, 2, '/', 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
			jute.AppendRequest(nil, "", &jute.Request{Op: op, Path: "/a", Ops: []jute.Request{{Op: jute.OpCreate, Path: "/a"}}}),
		} {
			f.Add(byte(2), int32(op), body)
		}
	}
	service := New(testConfig())
	f.Cleanup(service.Close)
	f.Fuzz(func(t *testing.T, how byte, op int32, data []byte) {
		bystander := newClient(t, service.Member(1))
		var hostile net.Conn
		switch how % 3 {
		case 0:
			near, far := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				service.Member(1).Serve(far)
			}()
			defer func() {
				near.Close() //nolint:errcheck // the server may have closed it
				<-served
			}()
			hostile = near
		case 1:
			hostile = newClient(t, service.Member(1))
			data = appendFrame(nil, func(b []byte) []byte { return append(b, data...) })
		default:
			hostile = newClient(t, service.Member(1))
			data = appendFrame(nil, func(b []byte) []byte {
				return append(jute.AppendRequestHeader(b, jute.RequestHeader{Xid: 1, Op: jute.Op(op)}), data...)
			})
		}
		go io.Copy(io.Discard, hostile) //nolint:errcheck // it ends with the connection
		hostile.Write(data)             //nolint:errcheck // the server may have closed it
		bystander.ping(t)
	})
}
