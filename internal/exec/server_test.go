package exec_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// server is a ZooKeeper server in memory that does what its test sets. By default it grants every session and
// says yes to every request. While it is down it refuses connections.
type server struct {
	// serve answers a request by itself if it returns true. It is not asked about pings and goodbyes.
	serve func(p *peer, r *request) bool
	// greet answers a connect request by itself if it returns true.
	greet func(p *peer, req jute.ConnectRequest) bool
	down  atomic.Bool
	zxid  atomic.Int64

	mu   sync.Mutex
	last int64
	live map[*peer]struct{}
	seen []*request
	wg   sync.WaitGroup
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	s := &server{last: 0x1000, live: make(map[*peer]struct{})}
	tb.Cleanup(func() {
		s.cutAll()
		s.wg.Wait()
	})
	return s
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	p := &peer{s: s, nc: ours}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[p] = struct{}{}
	s.wg.Go(p.run)
	return theirs, nil
}

// cutAll ends all connections, not the sessions.
func (s *server) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.live {
		p.cut()
	}
}

// paths returns the paths of the requests that have arrived.
func (s *server) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, r := range s.seen {
		list = append(list, r.path())
	}
	return list
}

// peer is one connection.
type peer struct {
	s        *server
	nc       net.Conn
	mu       sync.Mutex // of writing
	greeting jute.ConnectRequest
}

type request struct {
	jute.RequestHeader
	body []byte
	p    *peer
}

func (r *request) path() string {
	d := jute.NewDecoder(r.body)
	return d.String()
}

func (r *request) data() []byte {
	req, err := jute.DecodeRequest(r.Op, r.body)
	if err != nil {
		panic(err)
	}
	return req.Data
}

func (p *peer) run() {
	defer func() {
		p.cut()
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		delete(p.s.live, p)
	}()
	in := bufio.NewReader(p.nc)
	frame, err := readFrame(in)
	if err != nil {
		return
	}
	if p.greeting, err = jute.DecodeConnectRequest(frame); err != nil {
		return
	}
	if p.s.greet == nil || !p.s.greet(p, p.greeting) {
		p.grant()
	}
	for {
		frame, err := readFrame(in)
		if err != nil {
			return
		}
		h, body, err := jute.DecodeRequestHeader(frame)
		if err != nil {
			return
		}
		r := &request{h, body, p}
		switch h.Op {
		case jute.OpPing, jute.OpSetWatches, jute.OpSetWatches2:
			p.answer(r, jute.CodeOK)
		case jute.OpCloseSession:
			p.answer(r, jute.CodeOK)
			return
		default:
			p.s.mu.Lock()
			p.s.seen = append(p.s.seen, r)
			p.s.mu.Unlock()
			if p.s.serve == nil || !p.s.serve(p, r) {
				p.answer(r, jute.CodeOK)
			}
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func (p *peer) cut() { _ = p.nc.Close() }

func (p *peer) send(body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

// grant grants the session that was asked for, or a new one.
func (p *peer) grant() {
	id := p.greeting.SessionID
	if id == 0 {
		p.s.mu.Lock()
		p.s.last++
		id = p.s.last
		p.s.mu.Unlock()
	}
	p.send(jute.AppendConnectResponse(nil, &jute.ConnectResponse{
		TimeoutMs: p.greeting.TimeoutMs, SessionID: id, HasReadOnly: true,
		Password: make([]byte, jute.PasswordSize),
	}))
}

// expire says that the session is gone.
func (p *peer) expire() {
	p.send(jute.AppendConnectResponse(nil, &jute.ConnectResponse{
		Password: make([]byte, jute.PasswordSize), HasReadOnly: true,
	}))
	p.cut()
}

// answer answers r; the record of a success is empty.
func (p *peer) answer(r *request, code jute.Code) {
	b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: r.Xid, Zxid: p.s.zxid.Add(1), Code: code})
	if code == jute.CodeOK {
		b = jute.AppendReply(b, r.Op, &jute.Reply{Path: "/"})
	}
	p.send(b)
}

// patience bounds what a test waits for; it is never what a test measures.
const patience = time.Minute

// receive returns the next of ch.
func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case v := <-ch:
		return v
	case <-t.C:
		tb.Fatal("waited too long")
	}
	panic("unreachable")
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
