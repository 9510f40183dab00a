package curatortest_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

// scripted answers every request with OK, in order, and a request for a path under /event with an event
// before.
type scripted struct {
	l  net.Listener // nil in memory
	wg sync.WaitGroup

	mu    sync.Mutex
	got   []string // paths
	conns map[net.Conn]struct{}
	last  int64 // session id
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	s := newScriptedInMemory(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.l = l
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.accept(conn)
		}
	})
	t.Cleanup(func() { l.Close() })
	return s
}

// newScriptedInMemory makes one without a listener, so that it can live in a bubble of testing/synctest.
func newScriptedInMemory(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{conns: map[net.Conn]struct{}{}, last: 100}
	t.Cleanup(func() {
		s.cutAll()
		s.wg.Wait()
	})
	return s
}

func (s *scripted) accept(conn net.Conn) {
	s.mu.Lock()
	s.conns[conn] = struct{}{}
	s.mu.Unlock()
	s.wg.Go(func() { s.serve(conn) })
}

// dial connects to a server in memory.
func (s *scripted) dial(context.Context) (net.Conn, error) {
	ours, theirs := curatortest.NewPipe()
	s.accept(theirs)
	return ours, nil
}

func (s *scripted) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

func (s *scripted) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *scripted) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *scripted) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(conn)
	if word, err := r.Peek(4); err == nil && string(word) == "ruok" {
		io.WriteString(conn, "imok, and a longer answer too\n")
		return
	}
	frame, err := readFrame(r)
	if err != nil {
		return
	}
	c, _ := jute.DecodeConnectRequest(frame)
	s.mu.Lock()
	if c.SessionID == 0 {
		s.last++
		c.SessionID = s.last
	}
	s.mu.Unlock()
	resp := jute.ConnectResponse{TimeoutMs: c.TimeoutMs, SessionID: c.SessionID, Password: make([]byte, 16)}
	conn.Write(frameOf(jute.AppendConnectResponse(nil, &resp)))
	for zxid := int64(1); ; zxid++ {
		frame, err := readFrame(r)
		if err != nil {
			return
		}
		h, body, _ := jute.DecodeRequestHeader(frame)
		d := jute.NewDecoder(body)
		path := d.String()
		s.mu.Lock()
		s.got = append(s.got, path)
		s.mu.Unlock()
		var out []byte
		if strings.HasPrefix(path, "/event") {
			b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1})
			e := jute.WatcherEvent{Type: zk.EventNodeCreated, State: zk.StateSyncConnected, Path: path}
			out = append(out, frameOf(jute.AppendWatcherEvent(b, &e))...)
		}
		out = append(out, frameOf(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: h.Xid, Zxid: zxid}))...)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func frameOf(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// maxFrame is the limit of servers and clients, jute.maxbuffer of Java.
const maxFrame = 1<<20 - 1

var errTooLong = errors.New("frame too long")

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, errTooLong
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// rawClient speaks the protocol by hand, so that tests decide what is sent when.
type rawClient struct {
	t       *testing.T
	conn    net.Conn
	r       *bufio.Reader
	session int64
	xid     int32
}

func dialRaw(t *testing.T, p *faulty) *rawClient {
	t.Helper()
	conn, err := p.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawClient{t: t, conn: conn, r: bufio.NewReader(conn)}
}

func connectRaw(t *testing.T, p *faulty) *rawClient {
	t.Helper()
	c := dialRaw(t, p)
	c.hello()
	frame, err := c.read(5 * time.Second)
	if err != nil {
		t.Fatal("handshake:", err)
	}
	resp, err := jute.DecodeConnectResponse(frame)
	if err != nil {
		t.Fatal("handshake:", err)
	}
	c.session = resp.SessionID
	return c
}

func (c *rawClient) hello() {
	r := jute.ConnectRequest{TimeoutMs: 10_000, SessionID: c.session, Password: make([]byte, 16)}
	c.conn.Write(frameOf(jute.AppendConnectRequest(nil, &r)))
}

// send sends one getData for each path, all in one write.
func (c *rawClient) send(paths ...string) {
	var reqs []jute.Request
	for _, p := range paths {
		reqs = append(reqs, jute.Request{Op: jute.OpGetData, Path: p})
	}
	c.sendRequests(reqs...)
}

func (c *rawClient) sendRequests(reqs ...jute.Request) {
	var out []byte
	for i := range reqs {
		c.xid++
		b := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: c.xid, Op: reqs[i].Op})
		out = append(out, frameOf(jute.AppendRequest(b, "", &reqs[i]))...)
	}
	c.conn.Write(out)
}

func (c *rawClient) read(limit time.Duration) ([]byte, error) {
	c.conn.SetReadDeadline(time.Now().Add(limit))
	return readFrame(c.r)
}

// xids reads n frames and gives their xids.
func (c *rawClient) xids(n int) []int32 {
	c.t.Helper()
	var got []int32
	for range n {
		frame, err := c.read(5 * time.Second)
		if err != nil {
			c.t.Fatalf("after xids %v: %v", got, err)
		}
		h, _, err := jute.DecodeReplyHeader(frame)
		if err != nil {
			c.t.Fatal(err)
		}
		got = append(got, h.Xid)
	}
	return got
}

func (c *rawClient) wantXids(want ...int32) {
	c.t.Helper()
	if got := c.xids(len(want)); !slices.Equal(got, want) {
		c.t.Errorf("xids %v, want %v", got, want)
	}
}

// fill sends more than all buffers on the way hold, so that it returns when somebody has read what was sent first.
func (c *rawClient) fill() {
	c.t.Helper()
	must(c.t, c.conn.SetWriteDeadline(time.Now().Add(limit)))
	_, err := c.conn.Write(make([]byte, 32<<20))
	must(c.t, err)
}

// wantSilence checks that nothing comes for a while, no end either.
func (c *rawClient) wantSilence() {
	c.t.Helper()
	if b, err := c.read(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %x, %v; want silence", b, err)
	}
}

// wantEnd checks that the connection ends here, and gives what came of a frame before.
func (c *rawClient) wantEnd() []byte {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	b, err := io.ReadAll(c.r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("connection goes on")
	}
	return b
}

func newProxy(t *testing.T, target string) *curatortest.Proxy {
	t.Helper()
	p := curatortest.NewProxyT(t, target)
	return p
}

// faulty is a scripted server behind faults.
type faulty struct {
	*curatortest.Faults
	proxy *curatortest.Proxy // nil in memory
	dial  func() (net.Conn, error)
	close func() error
}

// way sets up a scripted server and faults before it.
type way func(t *testing.T) (*scripted, *faulty)

// ways are a proxy, and in memory as with a server of this package.
var ways = map[string]way{"proxy": scriptedProxy, "memory": scriptedInMemory}

func scriptedProxy(t *testing.T) (*scripted, *faulty) {
	t.Helper()
	s := newScripted(t)
	p := newProxy(t, s.l.Addr().String())
	return s, &faulty{
		Faults: p.Faults(),
		proxy:  p,
		dial:   func() (net.Conn, error) { return net.Dial("tcp", p.Addr()) },
		close:  p.Close,
	}
}

func scriptedInMemory(t *testing.T) (*scripted, *faulty) {
	t.Helper()
	s := newScriptedInMemory(t)
	f := curatortest.NewFaults(s.dial)
	t.Cleanup(func() { must(t, f.Close()) })
	return s, &faulty{
		Faults: f,
		dial:   func() (net.Conn, error) { return f.Connect(t.Context()) },
		close:  f.Close,
	}
}

func wait(t *testing.T, in *curatortest.Injection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := in.Wait(ctx); err != nil {
		t.Fatal("no hit:", err)
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never:", what)
		}
	}
}
