package wire_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// server is a ZooKeeper server that does what its test sets. By default it grants every session and says yes to
// every request. It listens on TCP after listen, and always on connections in memory, for tests in a bubble
// of synctest.
type server struct {
	// greet answers a connect request by itself if it returns true; a peer that stays mute is left unanswered.
	greet func(p *peer, req jute.ConnectRequest) bool
	// serve answers a request by itself if it returns true. It is not requested about pings.
	serve func(p *peer, r *request) bool
	// probed answers a ping by itself if it returns true.
	probed func(p *peer, r *request) bool
	// mutePings leaves pings unanswered.
	mutePings atomic.Bool
	// word is the answer to the four-letter word isro.
	word atomic.Pointer[string]

	peers chan *peer // each one that has sent its connect request
	zxid  atomic.Int64

	mu     sync.Mutex
	lastID int64
	live   map[*peer]struct{}
	closed bool
	wg     sync.WaitGroup
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	s := &server{peers: make(chan *peer, 10_000), lastID: 0x1000, live: make(map[*peer]struct{})}
	tb.Cleanup(s.close)
	return s
}

func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cutAll()
	s.wg.Wait()
}

// cutAll ends all connections, not the sessions.
func (s *server) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.live {
		p.cut()
	}
}

// listen makes s reachable at the address that it returns.
func (s *server) listen(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.take(nc)
		}
	})
	tb.Cleanup(func() { _ = l.Close() }) // before close, which waits for the goroutine
	return l.Addr().String()
}

// pipe returns the client's end of a connection in memory.
func (s *server) pipe() net.Conn {
	ours, theirs := net.Pipe()
	s.take(ours)
	return theirs
}

func (s *server) take(nc net.Conn) {
	p := &peer{
		s: s, nc: nc, ended: make(chan struct{}), r: bufio.NewReaderSize(nc, 64<<10), w: bufio.NewWriterSize(nc, 64<<10),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return
	}
	s.live[p] = struct{}{}
	s.wg.Go(p.run)
}

// next returns the next peer that has sent its connect request.
func (s *server) next(tb testing.TB) *peer {
	tb.Helper()
	return receive(tb, s.peers)
}

// peerOf returns the next peer that has the session of c, past those of tries that c has given up.
func (s *server) peerOf(tb testing.TB, c *client) *peer {
	tb.Helper()
	for {
		if p := s.next(tb); p.session == c.SessionID() {
			return p
		}
	}
}

func (s *server) newSession() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	return s.lastID
}

// network is a network in memory: what a client may dial.
type network map[string]*server

// blackHole is a server that never answers the dialing.
var blackHole = new(server)

func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	switch s := n[address]; s {
	case nil:
		return nil, errors.New("connection refused")
	case blackHole:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return s.pipe(), nil
	}
}

// peer is one connection to a server.
type peer struct {
	s        *server
	nc       net.Conn
	r        *bufio.Reader
	greeting jute.ConnectRequest
	session  int64
	ended    chan struct{} // closed when all that was read is served

	mu     sync.Mutex
	w      *bufio.Writer
	corked bool // more input is at hand: flush later
}

// request is what a peer has sent.
type request struct {
	jute.RequestHeader
	body []byte
}

// decoded returns the request's record.
func (r *request) decoded(tb testing.TB) jute.Request {
	tb.Helper()
	req, err := jute.DecodeRequest(r.Op, r.body)
	if err != nil {
		tb.Errorf("request %s: %v", r.Op, err)
	}
	return req
}

func (r *request) path() string {
	d := jute.NewDecoder(r.body)
	return d.String()
}

func (p *peer) run() {
	defer close(p.ended)
	defer func() {
		_ = p.nc.Close()
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		delete(p.s.live, p)
	}()
	if p.s.word.Load() != nil {
		if word, err := p.r.Peek(4); err == nil && string(word) == "isro" {
			_, _ = io.WriteString(p.nc, *p.s.word.Load())
			return
		}
	}
	frame, err := p.frame()
	if err != nil {
		return
	}
	if p.greeting, err = jute.DecodeConnectRequest(frame); err != nil {
		return
	}
	if greet := p.s.greet; greet == nil || !greet(p, p.greeting) {
		p.grant()
	}
	p.s.peers <- p
	for {
		p.cork(p.r.Buffered() > 0)
		frame, err := p.frame()
		if err != nil {
			return
		}
		h, body, err := jute.DecodeRequestHeader(frame)
		if err != nil {
			return
		}
		r := &request{RequestHeader: h, body: body}
		switch {
		case h.Xid == jute.XidPing && p.s.mutePings.Load():
		case h.Xid == jute.XidPing && p.s.probed != nil && p.s.probed(p, r):
		case h.Xid == jute.XidPing:
			p.yes(r)
		case p.s.serve != nil && p.s.serve(p, r):
		default:
			p.yes(r)
		}
	}
}

func (p *peer) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > wire.MaxFrame { // another protocol: wait for an end that does not come
		_, err := io.Copy(io.Discard, p.r)
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(p.r, frame)
	return frame, err
}

func (p *peer) cork(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.corked = on; !on {
		_ = p.w.Flush()
	}
}

// cut ends the connection. What was written before still arrives.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.w.Flush()
	_ = p.nc.Close()
}

// raw sends bytes as they are.
func (p *peer) raw(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(b)
	if !p.corked {
		_ = p.w.Flush()
	}
}

// send sends a frame.
func (p *peer) send(body []byte) { p.raw(framed(body)) }

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// respond answers the connect request.
func (p *peer) respond(resp jute.ConnectResponse) {
	if resp.Password == nil {
		resp.Password = make([]byte, jute.PasswordSize)
	}
	resp.HasReadOnly = p.greeting.HasReadOnly
	p.session = resp.SessionID
	p.send(jute.AppendConnectResponse(nil, &resp))
}

// grant grants the session that was asked for, or a new one.
func (p *peer) grant() { p.grantAs(false) }

func (p *peer) grantAs(readOnly bool) {
	id := p.greeting.SessionID
	if id == 0 {
		id = p.s.newSession()
	}
	p.respond(jute.ConnectResponse{
		TimeoutMs: p.greeting.TimeoutMs, SessionID: id, ReadOnly: readOnly, Password: []byte("sixteen letters!"),
	})
}

// expire says that the session is gone, and hangs up as a server does.
func (p *peer) expire() {
	p.respond(jute.ConnectResponse{})
	p.cut()
}

// answer answers r with a body that is already encoded.
func (p *peer) answer(xid int32, zxid int64, code jute.Code, body []byte) {
	b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: xid, Zxid: zxid, Code: code})
	p.send(append(b, body...))
}

// no answers r with an error.
func (p *peer) no(r *request, code jute.Code) { p.answer(r.Xid, p.s.zxid.Add(1), code, nil) }

// reply answers r with a record.
func (p *peer) reply(r *request, reply jute.Reply) {
	p.answer(r.Xid, p.s.zxid.Add(1), jute.CodeOK, jute.AppendReply(nil, r.Op, &reply))
}

// yes answers r with success, and with its path where the answer has one.
func (p *peer) yes(r *request) {
	switch r.Op {
	case jute.OpPing, jute.OpAuth, jute.OpSetWatches, jute.OpSetWatches2:
		p.answer(r.Xid, p.s.zxid.Load(), jute.CodeOK, nil)
	case jute.OpCloseSession:
		p.answer(r.Xid, p.s.zxid.Add(1), jute.CodeOK, nil)
		p.cut()
	case jute.OpMulti:
		p.reply(r, jute.Reply{})
	default:
		p.reply(r, jute.Reply{Path: r.path(), Stat: zk.Stat{Version: 1}})
	}
}

// event sends a watch event.
func (p *peer) event(typ zk.EventType, path string) {
	b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1})
	p.send(jute.AppendWatcherEvent(b, &jute.WatcherEvent{Type: typ, State: zk.StateHasSession, Path: path}))
}

// patience bounds what a test waits for; it is never what a test measures.
const patience = 2 * time.Minute

// receive returns the next of ch.
func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case v, ok := <-ch:
		if !ok {
			tb.Fatal("channel is closed")
		}
		return v
	case <-t.C:
		tb.Fatal("waited too long")
	}
	panic("unreachable")
}

// wait waits until ch is closed.
func wait(tb testing.TB, ch <-chan struct{}) {
	tb.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-ch:
	case <-t.C:
		tb.Fatal("waited too long")
	}
}

// empty fails if ch has something.
func empty[T any](tb testing.TB, ch <-chan T) {
	tb.Helper()
	select {
	case v := <-ch:
		tb.Errorf("got %v, want nothing", v)
	default:
	}
}

// recorder keeps what it is given, for any goroutine.
type recorder[T any] struct {
	mu   sync.Mutex
	list []T
}

func (r *recorder[T]) add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, v)
}

func (r *recorder[T]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

func (r *recorder[T]) all() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}
