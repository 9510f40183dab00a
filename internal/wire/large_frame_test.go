package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A length is only a promise: memory comes with the bytes.
func TestLengthAloneTakesNoMemory(t *testing.T) {
	tests := []struct {
		name  string
		greet bool // the handshake is done before
		size  uint32
	}{
		{"before the handshake", false, 60 << 20},
		{"of an answer", true, 60 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const clients = 20
			s := newServer(t)
			lie := binary.BigEndian.AppendUint32(nil, tt.size)
			s.greet = func(p *peer, _ jute.ConnectRequest) bool {
				if !tt.greet {
					p.raw(append(slices.Clone(lie), 0))
				}
				return !tt.greet
			}
			s.serve = func(p *peer, r *request) bool {
				if r.path() == "/n" {
					p.raw(append(slices.Clone(lie), 0))
				}
				return r.path() == "/n"
			}
			address := s.listen(t)
			before := heap()
			for range clients {
				c := open(t, wire.Config{Servers: []string{address}, CloseWait: time.Millisecond})
				if tt.greet {
					c.await(t, wire.Connected)
					c.submit(t, get("/n", handlerFunc(func(*wire.Request) {})))
				}
				s.next(t)
			}
			if grown := heap() - before; grown > 24<<20 {
				t.Errorf("%d clients take %d bytes", clients, grown)
			}
		})
	}
}

// A server that answers the handshake with more than that may have is left at once.
func TestHandshakeIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			p.raw(binary.BigEndian.AppendUint32(nil, 4097))
			return true
		}
		c := open(t, dialTo(network{"a:1": s}))
		start := time.Now()
		c.want(t, wire.Disconnected)
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
		if err := c.LastError(); err == nil || !strings.Contains(err.Error(), "handshake: wire: frame of 4097 bytes") {
			t.Errorf("last error: %v", err)
		}
	})
}

// A port that speaks TLS alone says so to a client that does not.
func TestHandshakeThatIsAnsweredInTLS(t *testing.T) {
	for name, answer := range map[string]string{
		"alert": "\x15\x03\x03\x00\x02\x02\x46", "handshake": "\x16\x03\x01\x00\x02\x01\x01",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.greet = func(p *peer, _ jute.ConnectRequest) bool {
					p.raw([]byte(answer))
					return true
				}
				c := open(t, dialTo(network{"a:1": s}))
				c.want(t, wire.Disconnected)
				if err := c.LastError(); err == nil || !strings.Contains(err.Error(), "the server answers in TLS") {
					t.Errorf("last error: %v", err)
				}
			})
		})
	}
}

// reply is what a server answers to a getData with n bytes.
func largeReply(n int) jute.Reply {
	return jute.Reply{Data: bytes.Repeat([]byte{'x'}, n), Stat: zk.Stat{Version: 1}}
}

func TestLargeReplyDoesNotKeepItsMemory(t *testing.T) {
	const size = 12 << 20
	s := newServer(t)
	body := jute.AppendReply(nil, jute.OpGetData, &jute.Reply{Data: make([]byte, size), Stat: zk.Stat{Version: 1}})
	s.serve = func(p *peer, r *request) bool {
		if r.path() == "/large" {
			p.answer(r.Xid, 1, jute.CodeOK, body)
		}
		return r.path() == "/large"
	}
	c, _ := connect(t, s)
	before := heap()
	if r := c.ask(t, get("/large", nil)); r.Err != nil || len(r.Reply.Data) != size {
		t.Fatalf("%d bytes, %v", len(r.Reply.Data), r.Err)
	}
	c.ask(t, get("/small", nil))
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the connection keeps %d bytes", grown)
	}
}

// A reply over the limit is the error of its own request: what is in flight beside it is answered, and the connection
// stays.
func TestReplyOverTheLimitFailsItsOwnRequest(t *testing.T) {
	const limit = 200_000
	for _, over := range []int{0, 1, 70_000, 5 << 20} {
		s := newServer(t)
		header := 16 + 4 + 68
		s.serve = func(p *peer, r *request) bool {
			if r.path() == "/large" {
				p.reply(r, largeReply(limit-header+over))
			}
			return r.path() == "/large"
		}
		c := open(t, wire.Config{Servers: []string{s.listen(t)}, MaxReply: limit})
		c.await(t, wire.Connected)
		done := newAnswers()
		w := newWatcher()
		requests := []*wire.Request{get("/a", done), watch(jute.OpGetData, "/large", w, done), get("/b", done)}
		for _, r := range requests {
			c.submit(t, r)
		}
		for i, want := range requests {
			r := receive(t, done)
			tooLarge := i == 1 && over > 0
			if r != want || errors.Is(r.Err, wire.ErrReplyTooLarge) != tooLarge || !tooLarge && r.Err != nil {
				t.Errorf("%d over: answer %d: %v", over, i, r.Err)
			}
		}
		if got, want := c.Watches(wire.WatchAny, "/large", w), over == 0; got != want {
			t.Errorf("%d over: watching is %t", over, got)
		}
		if r := c.ask(t, get("/c", nil)); r.Err != nil {
			t.Error(r.Err)
		}
		select {
		case s := <-c.states:
			t.Errorf("%d over: state %v", over, s)
		default:
		}
	}
}

// The server has set the watch of a request whose reply is too large; no later request would remove it.
func TestReplyOverTheLimitLeavesNoWatch(t *testing.T) {
	s := newServer(t)
	removed := make(chan string, 1)
	s.serve = func(p *peer, r *request) bool {
		switch r.Op {
		case jute.OpGetData:
			p.reply(r, largeReply(100_000))
			return true
		case jute.OpRemoveWatches:
			removed <- r.path()
		}
		return false
	}
	c := open(t, wire.Config{Servers: []string{s.listen(t)}, MaxReply: 50_000})
	c.await(t, wire.Connected)
	if r := c.ask(t, watch(jute.OpGetData, "/n", newWatcher(), nil)); !errors.Is(r.Err, wire.ErrReplyTooLarge) {
		t.Fatal(r.Err)
	}
	if path := receive(t, removed); path != "/n" {
		t.Errorf("removed the watch of %s", path)
	}
}

// More results than operations would take more memory than the bytes they come in.
func TestMultiHasNoMoreResultsThanOperations(t *testing.T) {
	s := newServer(t)
	results := make([]jute.Result, 100_000)
	for i := range results {
		results[i] = jute.Result{Op: jute.OpCheck}
	}
	s.serve = func(p *peer, r *request) bool {
		if r.Op == jute.OpMulti {
			p.reply(r, jute.Reply{Results: results})
		}
		return r.Op == jute.OpMulti
	}
	c, _ := connect(t, s)
	multi := jute.Request{Op: jute.OpMulti, Ops: []jute.Request{{Op: jute.OpCheck, Path: "/n"}}}
	if r := c.ask(t, &wire.Request{Request: multi}); r.Err != jute.ErrConnectionLoss || len(r.Reply.Results) > 0 {
		t.Errorf("%d results, %v", len(r.Reply.Results), r.Err)
	}
	c.want(t, wire.Disconnected)
}

// A connection that reads nothing for a while is given up, also in the middle of a frame that is skipped.
func TestReplyOverTheLimitThatStopsEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.path() == "/n" {
				b := binary.BigEndian.AppendUint32(nil, 100_000)
				p.raw(jute.AppendReplyHeader(b, jute.ReplyHeader{Xid: r.Xid, Zxid: 1}))
			}
			return r.path() == "/n"
		}
		s.mutePings.Store(true)
		cfg := dialTo(network{"a:1": s})
		cfg.MaxReply, cfg.SessionTimeout = 50_000, 600*time.Millisecond
		c := open(t, cfg)
		c.want(t, wire.Connected)
		if r := c.ask(t, get("/n", nil)); r.Err != jute.ErrConnectionLoss {
			t.Error(r.Err)
		}
		c.want(t, wire.Disconnected)
	})
}
