package wire_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// What a server of our time would never send ends the connection, and only that: what was in flight is lost,
// and the next connection serves.
func TestHostileFrameEndsTheConnection(t *testing.T) {
	answer := func(xid int32, code jute.Code, body []byte) []byte {
		return framed(append(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: xid, Zxid: 1, Code: code}), body...))
	}
	event := func(body ...byte) []byte {
		b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1})
		return framed(append(b, body...))
	}
	large := make([]byte, 3*wire.LibraryBuffer)
	tests := []struct {
		name  string
		bytes func(r *request) []byte
		cut   bool // the server hangs up behind it
	}{
		{"a negative length", func(*request) []byte { return []byte{0xff, 0xff, 0xff, 0xff} }, false},
		{"the least length", func(*request) []byte { return []byte{0x80, 0, 0, 0} }, false},
		{"a huge length", func(*request) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} }, false},
		{"an empty frame", func(*request) []byte { return []byte{0, 0, 0, 0} }, false},
		{"half a header", func(*request) []byte { return framed(make([]byte, 9)) }, false},
		{"a truncated frame", func(r *request) []byte { return answer(r.Xid, 0, nil)[:11] }, true},
		{"an answer of another request", func(r *request) []byte { return answer(r.Xid+1, 0, nil) }, false},
		{"an answer of a request of later", func(r *request) []byte { return answer(r.Xid+7, 0, nil) }, false},
		{"an answer of a request of old", func(r *request) []byte { return answer(r.Xid-1, 0, nil) }, false},
		{"an answer to an unknown request", func(*request) []byte { return answer(12, 0, nil) }, false},
		{"an answer of the number 0", func(*request) []byte { return answer(0, 0, nil) }, false},
		{"an answer of a negative number", func(*request) []byte { return answer(-77, 0, nil) }, false},
		{"a large answer to an unknown request", func(*request) []byte { return answer(12, 0, large) }, false},
		{"a large ping", func(*request) []byte { return answer(jute.XidPing, 0, large) }, false},
		{"an answer without its record", func(r *request) []byte { return answer(r.Xid, 0, nil) }, false},
		{
			"an answer whose record is garbage",
			func(r *request) []byte { return answer(r.Xid, 0, []byte{0xff, 0xff, 0xff, 0xf0, 1, 2, 3}) }, false,
		},
		{"an event without its record", func(*request) []byte { return event() }, false},
		{
			"an event whose path is cut",
			func(*request) []byte { return event(0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9, '/') }, false,
		},
		{"no ZooKeeper", func(*request) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				var hostile *peer
				all := make(chan struct{})
				s.serve = func(p *peer, r *request) bool {
					if hostile == nil && r.path() == "/n" {
						<-all
						hostile = p
						p.raw(tt.bytes(r))
						if tt.cut {
							p.cut()
						}
					}
					return p == hostile
				}
				c, _ := connectPiped(t, s)
				w := newWatcher()
				c.ask(t, addWatch(wire.PersistentRecursive, "/", w, nil))
				start := time.Now()
				done := newAnswers()
				for range 3 {
					c.submit(t, get("/n", done))
				}
				close(all)
				for i := range 3 {
					if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
						t.Errorf("request %d: %v, want connection loss", i, r.Err)
					}
				}
				c.want(t, wire.Disconnected)
				if d := time.Since(start); d > 0 {
					t.Errorf("it took %s", d)
				}
				c.want(t, wire.Connected)
				if r := c.ask(t, get("/n", nil)); r.Err != nil {
					t.Errorf("on the next connection: %v", r.Err)
				}
				empty(t, done)
			})
		})
	}
}

// What is merely odd is no reason to hang up.
func TestOddFrameIsPassedOver(t *testing.T) {
	event := func(typ zk.EventType, path string) []byte {
		b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1})
		return framed(jute.AppendWatcherEvent(b, &jute.WatcherEvent{Type: typ, Path: path}))
	}
	answer := func(xid int32) []byte {
		return framed(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: xid}))
	}
	tests := map[string][]byte{
		"a ping without a request":          answer(jute.XidPing),
		"an event without a watch":          event(zk.EventNodeDeleted, "/elsewhere"),
		"an event of an unknown type":       event(77, "/elsewhere"),
		"an event of the session":           event(zk.EventSession, ""),
		"an event of a path without a root": event(zk.EventNodeDeleted, "elsewhere"),
		"an answer to watches":              answer(jute.XidSetWatches),
		"an answer to credentials":          answer(jute.XidAuth),
	}
	for name, frame := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				c, p := connectPiped(t, s)
				w := newWatcher()
				c.ask(t, addWatch(wire.PersistentRecursive, "/n", w, nil))
				p.raw(frame)
				if r := c.ask(t, get("/n", nil)); r.Err != nil {
					t.Error(r.Err)
				}
				empty(t, c.states)
				empty(t, w)
			})
		})
	}
}

func TestFramesOfAllSizesArrive(t *testing.T) {
	const k = 1 << 10
	sizes := []int{0, 1, 100, 4 * k, 15 * k, 16 * k, 17 * k, 63 * k, 64 * k, 65 * k, 300 * k, 5000 * k, 10}
	for name, start := range map[string]func(testing.TB, *server) (*client, *peer){
		"over TCP": connect, "in memory": connectPiped,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.serve = func(p *peer, r *request) bool {
				if r.Op == jute.OpSASL { // it comes back as it was sent
					p.reply(r, jute.Reply{Data: r.decoded(t).Data})
				}
				return r.Op == jute.OpSASL
			}
			c, _ := start(t, s)
			done := newAnswers()
			for round := range 3 {
				for i, size := range sizes {
					data := make([]byte, size)
					for n := range data {
						data[n] = byte(n * (i + round + 1))
					}
					r := &wire.Request{Request: jute.Request{Op: jute.OpSASL, Data: data}, Handler: done}
					c.submit(t, r)
				}
			}
			for range 3 * len(sizes) {
				if r := receive(t, done); r.Err != nil || !bytes.Equal(r.Reply.Data, r.Data) {
					t.Fatalf("%d bytes came back as %d, %v", len(r.Data), len(r.Reply.Data), r.Err)
				}
			}
		})
	}
}
