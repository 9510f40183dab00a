package zkserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// client is a connection to a member.
type client struct {
	net.Conn
	r       *bufio.Reader
	session jute.ConnectResponse
	timeout time.Duration
	xid     int32
}

func connect(tb testing.TB, m *Member) *client {
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
	return &client{Conn: near, r: bufio.NewReader(near)}
}

// dial connects and shakes hands. It returns nil if the member refuses the client.
func dial(tb testing.TB, m *Member, q jute.ConnectRequest) *client {
	tb.Helper()
	if q.Password == nil {
		q.Password = make([]byte, jute.PasswordSize)
	}
	c := connect(tb, m)
	c.write(tb, jute.AppendConnectRequest(nil, &q))
	b, err := c.frame()
	if err != nil {
		return nil
	}
	if c.session, err = jute.DecodeConnectResponse(b); err != nil {
		tb.Fatal(err)
	}
	c.timeout = time.Duration(c.session.TimeoutMs) * time.Millisecond
	return c
}

// newClient dials for a new session, and fails the test if the member refuses it.
func newClient(tb testing.TB, m *Member) *client {
	tb.Helper()
	c := dial(tb, m, jute.ConnectRequest{TimeoutMs: 30_000})
	if c == nil || c.session.SessionID == 0 {
		tb.Fatal("no session")
	}
	return c
}

// again dials for the session of a client.
func (c *client) again(tb testing.TB, m *Member, timeout time.Duration) *client {
	tb.Helper()
	return dial(tb, m, jute.ConnectRequest{
		SessionID: c.session.SessionID, Password: c.session.Password, TimeoutMs: int32(timeout.Milliseconds()),
	})
}

func (c *client) write(tb testing.TB, body []byte) {
	tb.Helper()
	if _, err := c.Write(appendFrame(nil, func(b []byte) []byte { return append(b, body...) })); err != nil {
		tb.Fatal(err)
	}
}

func (c *client) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.r, b)
	return b, err
}

func (c *client) read(tb testing.TB) []byte {
	tb.Helper()
	b, err := c.frame()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// do sends a request that must succeed.
func (c *client) do(tb testing.TB, r jute.Request) {
	tb.Helper()
	c.xid++
	c.write(tb, jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: c.xid, Op: r.Op}), "", &r))
	for {
		h, _, err := jute.DecodeReplyHeader(c.read(tb))
		if err != nil {
			tb.Fatal(err)
		}
		if h.Xid == c.xid {
			if h.Code != jute.CodeOK {
				tb.Fatalf("%v %s: %v", r.Op, r.Path, h.Code)
			}
			return
		}
	}
}

func (c *client) create(tb testing.TB, path string) {
	tb.Helper()
	c.do(tb, jute.Request{Op: jute.OpCreate, Path: path, ACL: zk.WorldACL(zk.PermAll)})
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

func testConfig() Config {
	return Config{
		Members:           1,
		Tick:              100 * time.Millisecond,
		MinSessionTimeout: 200 * time.Millisecond,
		MaxSessionTimeout: time.Hour,
		SweepInterval:     time.Hour,
		MaxRequest:        1 << 20,
	}
}

// newCluster makes a service of three members that serve read-only clients without a quorum.
func newCluster(tb testing.TB) *Service {
	tb.Helper()
	c := testConfig()
	c.Members, c.ReadOnly = 3, true
	s := New(c)
	tb.Cleanup(s.Close)
	return s
}

func exists(m *Member, path string) bool {
	_, ok := m.Node(path)
	return ok
}

// leader returns the member that leads.
func leader(tb testing.TB, s *Service) *Member {
	tb.Helper()
	for _, m := range s.members {
		if m.Leads() {
			return m
		}
	}
	tb.Fatal("there is no leader")
	return nil
}
