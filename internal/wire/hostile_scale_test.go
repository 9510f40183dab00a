package wire_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// An answer above a limit that is smaller than the buffers is refused like any other.
func TestSmallLimitOfRepliesHolds(t *testing.T) {
	const limit = 10_000
	s := newServer(t)
	s.serve = func(p *peer, r *request) bool {
		size := map[string]int{"/large": limit + 1, "/small": limit / 2}[r.path()]
		if size > 0 {
			p.reply(r, jute.Reply{Data: make([]byte, size)})
		}
		return size > 0
	}
	cfg := dialTo(network{"a:1": s})
	cfg.MaxReply = limit
	c := open(t, cfg)
	c.await(t, wire.Connected)
	for range 3 {
		if r := c.ask(t, get("/large", nil)); !errors.Is(r.Err, wire.ErrReplyTooLarge) {
			t.Errorf("large: %v, want %v", r.Err, wire.ErrReplyTooLarge)
		}
		if r := c.ask(t, get("/small", nil)); r.Err != nil || len(r.Reply.Data) != limit/2 {
			t.Errorf("small: %d bytes, %v", len(r.Reply.Data), r.Err)
		}
	}
	empty(t, c.states)
}

// The path of an event has as many ancestors as the server pleases.
func TestEventOfDeepPathDoesNotBlock(t *testing.T) {
	s := newServer(t)
	c, p := connect(t, s)
	w := newWatcher()
	c.ask(t, addWatch(wire.PersistentRecursive, "/a", w, nil))
	for n := range 20 { // too many to be compared one by one
		c.ask(t, addWatch(wire.PersistentRecursive, "/other-"+strconv.Itoa(n), w, nil))
	}
	start := time.Now()
	p.event(zk.EventNodeCreated, strings.Repeat("/a", 1<<20))
	if r := c.ask(t, get("/n", nil)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("an event of 2 MB held everything up for %v", took)
	}
	w.nodeEvent(t)
}
