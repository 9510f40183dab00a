package conformance_test

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// story is a test that a script cannot express: bytes, times, actions of the server itself. It is played on both
// servers, beside other stories unless it is about the whole server.
type story struct {
	name  string
	alone bool
	play  func(stage)
}

// stage is where a story is played.
type stage struct {
	*testing.T
	addr    string
	release release
}

// TestStories plays the stories on both servers: a tick is 100 ms, and a sweep comes within 200 ms.
func TestStories(t *testing.T) {
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) {
			playStories(t, curatortest.NewServerT(t, curatortest.WithVersion(r.version),
				curatortest.WithSweepInterval(storySweep)).Addr(), r)
		})
	}
	t.Run("real", func(t *testing.T) {
		testenv.RequireReal(t)
		server, err := curatortest.NewRealServer(curatortest.WithSweepInterval(storySweep))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		playStories(t, server.Addr(), releaseOf(t, server))
	})
}

func playStories(t *testing.T, addr string, r release) {
	t.Helper()
	for _, s := range slices.Concat(wordStories, wireStories, statStories, sessionStories, sweepStories) {
		t.Run(s.name, func(t *testing.T) {
			if !s.alone {
				t.Parallel()
			}
			s.play(stage{t, addr, r})
		})
	}
}

const (
	storyTick  = 100 * time.Millisecond // of both servers
	storySweep = 2 * storyTick
)

// slack is how late a busy machine may be.
const slack = 5 * time.Second

// connect opens a connection for a new session, and closes it when the test ends.
func connect(tb testing.TB, addr string, timeout time.Duration) *conn {
	tb.Helper()
	return take(tb, addr, &conn{}, timeout)
}

// take opens a connection for the session of another.
func take(tb testing.TB, addr string, of *conn, timeout time.Duration) *conn {
	tb.Helper()
	c, err := dial(addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() }) //nolint:errcheck // the server may have ended it
	_, err = c.handshake(jute.ConnectRequest{
		TimeoutMs:   int32(timeout.Milliseconds()),
		SessionID:   of.session,
		Password:    of.password,
		HasReadOnly: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// must sends a request that must succeed.
func (c *conn) must(tb testing.TB, r jute.Request) jute.Reply {
	tb.Helper()
	if r.ACL == nil {
		r.ACL = zk.WorldACL(zk.PermAll)
	}
	a, err := c.request(&r)
	if err == nil {
		err = a.Code.Err()
	}
	var reply jute.Reply
	if err == nil {
		err = jute.DecodeReply(r.Op, a.body, &reply)
	}
	if err != nil {
		tb.Fatalf("%v %s: %v", r.Op, r.Path, err)
	}
	return reply
}

func (c *conn) create(tb testing.TB, path string, flags int32) zk.Stat {
	tb.Helper()
	return c.must(tb, jute.Request{Op: jute.OpCreate2, Path: path, Flags: flags}).Stat
}

func (c *conn) delete(tb testing.TB, path string) {
	tb.Helper()
	c.must(tb, jute.Request{Op: jute.OpDelete, Path: path, Version: -1})
}

func (c *conn) watch(tb testing.TB, path string) {
	tb.Helper()
	c.must(tb, jute.Request{Op: jute.OpExists, Path: path, Watch: true})
}

func (c *conn) ping(tb testing.TB) {
	tb.Helper()
	c.must(tb, jute.Request{Op: jute.OpPing})
}

// awaitDeleted waits for the event that a node is gone, and gives the time.
func (c *conn) awaitDeleted(tb testing.TB, path string) time.Time {
	tb.Helper()
	a, err := c.readAnswer()
	if err != nil {
		tb.Fatal(err)
	}
	now := time.Now()
	e, err := jute.DecodeWatcherEvent(a.body)
	if err != nil || a.Xid != jute.XidNotification || e.Type != zk.EventNodeDeleted || e.Path != path {
		tb.Fatalf("received %+v of %+v, error %v", e, a.ReplyHeader, err)
	}
	return now
}

// awaitEnd waits for the end of the connection, before which nothing is received.
func (c *conn) awaitEnd(tb testing.TB) {
	tb.Helper()
	if f, err := c.readFrame(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		tb.Errorf("received %x, error %v, in place of the end", f, err)
	}
}
