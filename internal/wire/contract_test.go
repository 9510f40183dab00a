package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// The tests of this file pin what package wire leans on in go-zookeeper, without package wire between them
// and it. If an upgrade of the library breaks one of them, it breaks package wire: read internal/wire before
// changing a test.

// taped is a connection of the library and what it did with it.
type taped struct {
	net.Conn
	writes *recorder[[]byte]
	reads  *recorder[int] // what it asked for at once
}

func (c taped) Write(b []byte) (int, error) {
	c.writes.add(bytes.Clone(b))
	return c.Conn.Write(b)
}

func (c taped) Read(b []byte) (int, error) {
	c.reads.add(len(b))
	return c.Conn.Read(b)
}

// everywhere is a host provider with one server that never asks for a pause.
type everywhere struct {
	nexts, connecteds recorder[time.Time]
}

func (*everywhere) Init([]string) error { return nil }
func (*everywhere) Len() int            { return 1 }
func (e *everywhere) Connected()        { e.connecteds.add(time.Now()) }
func (e *everywhere) Next() (server string, retryStart bool) {
	e.nexts.add(time.Now())
	return "a:1", false
}

// library is the plain library on a server in memory.
type library struct {
	*zk.Conn
	events <-chan zk.Event
	hosts  *everywhere
	tape   taped // of all its connections
}

func openLibrary(t *testing.T, s *server) *library {
	t.Helper()
	l := &library{hosts: new(everywhere), tape: taped{writes: new(recorder[[]byte]), reads: new(recorder[int])}}
	var err error
	l.Conn, l.events, err = zk.Connect([]string{"unused:1"}, 3*time.Second,
		zk.WithHostProvider(l.hosts),
		zk.WithDialer(func(_, address string, _ time.Duration) (net.Conn, error) {
			if address != "a:1" {
				t.Errorf("dials %s, want what the host provider said", address)
			}
			return taped{s.pipe(), l.tape.writes, l.tape.reads}, nil
		}),
		zk.WithLogger(silent{}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(wire.LibraryBuffer),
		zk.WithMaxConnBufferSize(wire.LibraryBuffer),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		for range l.events { // until its goroutines have ended
		}
	})
	return l
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func TestContractFirstWriteIsAConnectRequestAndEachWriteOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		l := openLibrary(t, s)
		p := s.next(t)
		<-time.After(10 * time.Second) // of pings
		l.Close()

		writes := l.tape.writes.all()
		for i, w := range writes {
			if len(w) < 4 || int(binary.BigEndian.Uint32(w)) != len(w)-4 {
				t.Fatalf("write %d is not one frame: % x", i, w)
			}
		}
		want := jute.ConnectRequest{TimeoutMs: 3000, Password: make([]byte, jute.PasswordSize)}
		if diff := cmp.Diff(want, p.greeting); diff != "" {
			t.Errorf("connect request (-want +got):\n%s", diff)
		}
		var ops []jute.Op
		for _, w := range writes[1:] {
			h, _, err := jute.DecodeRequestHeader(w[4:])
			if err != nil {
				t.Fatal(err)
			}
			if h.Xid >= wire.FirstXid {
				t.Errorf("%s has a number of our range: %d", h.Op, h.Xid)
			}
			if h.Op == jute.OpPing != (h.Xid == jute.XidPing) {
				t.Errorf("%s has the number %d", h.Op, h.Xid)
			}
			ops = append(ops, h.Op)
		}
		if n := len(ops); n < 6 || ops[0] != jute.OpPing || ops[n-1] != jute.OpCloseSession {
			t.Errorf("wrote %v, want a ping a second and a goodbye", ops)
		}
	})
}

func TestContractReadsAskForNoMoreThanOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		l := openLibrary(t, s)
		<-time.After(2 * time.Second)
		l.Close()
		// The connect response without the byte of read-only, two pings, the goodbye.
		want := []int{4, 36, 4, 16, 4, 16}
		if diff := cmp.Diff(want, l.tape.reads.all()[:len(want)]); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
	})
}

func TestContractUnknownFramesPassThrough(t *testing.T) {
	frames := map[string][]byte{
		"a watch event": jute.AppendWatcherEvent(
			jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1}),
			&jute.WatcherEvent{Type: zk.EventNodeDeleted, State: zk.StateHasSession, Path: "/a"}),
		"an answer of ours":     jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: wire.FirstXid + 7, Zxid: 5}),
		"an answer of auth":     jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidAuth, Zxid: 5}),
		"an answer of watches":  jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidSetWatches, Zxid: 5}),
		"a number of the range": jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: 12, Zxid: 5}),
	}
	for name, frame := range frames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				l := openLibrary(t, s)
				s.next(t).send(frame)
				<-time.After(10 * time.Second)
				empty(t, s.peers)
				if got := l.State(); got != zk.StateHasSession {
					t.Errorf("state %s", got)
				}
			})
		})
	}
}

func TestContractSessionIsTakenUpAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		l := openLibrary(t, s)
		first := s.next(t)
		synctest.Wait()
		cut := time.Now()
		first.cut()
		second := s.next(t)
		if second.greeting.SessionID != first.session || string(second.greeting.Password) != "sixteen letters!" {
			t.Errorf("asks for session %#x with %q, want %#x", second.greeting.SessionID, second.greeting.Password,
				first.session)
		}
		synctest.Wait()
		// The host provider is asked for every dial, gets every session, and decides on pauses.
		if nexts := l.hosts.nexts.all(); len(nexts) != 2 || !nexts[1].Equal(cut) {
			t.Errorf("requested a server at %v, cut at %v", nexts, cut)
		}
		if got := len(l.hosts.connecteds.all()); got != 2 {
			t.Errorf("host provider got %d sessions, want 2", got)
		}
	})
}

func TestContractFailedHandshakeClosesAndDialsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var refused int
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			if refused == 3 {
				return false
			}
			refused++
			p.cut()
			return true
		}
		l := openLibrary(t, s)
		for range 4 {
			s.next(t)
		}
		synctest.Wait()
		if l.State() != zk.StateHasSession || len(l.hosts.connecteds.all()) != 1 {
			t.Errorf("state %s, got %d sessions", l.State(), len(l.hosts.connecteds.all()))
		}
	})
}

// The library does not hang up on an expired session, which is why package wire does; and it goes on by
// itself.
func TestContractExpiredSessionIsFollowedByANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(p *peer, req jute.ConnectRequest) bool {
			if req.SessionID == 0 {
				return false
			}
			p.respond(jute.ConnectResponse{})
			return true
		}
		openLibrary(t, s)
		first := s.next(t)
		synctest.Wait()
		first.cut()
		second, third := s.next(t), s.next(t)
		if third.greeting.SessionID != 0 { // the second gets its event after its answer, which brings the third
			second, third = third, second
		}
		if second.greeting.SessionID == 0 || third.greeting.SessionID != 0 || third.greeting.LastZxidSeen != 0 {
			t.Errorf("asks for session %#x, and then for %#x with zxid %d",
				second.greeting.SessionID, third.greeting.SessionID, third.greeting.LastZxidSeen)
		}
	})
}

func TestContractCloseSaysGoodbyeAndEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		goodbyes := make(chan *request, 2)
		s.serve = func(_ *peer, r *request) bool {
			if r.Op == jute.OpCloseSession {
				goodbyes <- r
			}
			return false
		}
		l := openLibrary(t, s)
		s.next(t)
		synctest.Wait()
		start := time.Now()
		l.Close()
		receive(t, goodbyes)
		for range l.events { // it is closed in the end: package wire waits for that
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("took %s with a server that answers at once", d)
		}
		empty(t, goodbyes)
	})
}

// What the library would say on stderr is seen only from outside: its logger keeps the first os.Stderr.
const noiseVariable = "WIRE_TEST_NOISE"

func TestContractLogOfTheLibraryDoesNotReachStderr(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), noiseVariable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	if got := string(out); got != "done\n" {
		t.Errorf("stdout %q", got)
	}
	if stderr.Len() > 0 {
		t.Errorf("on stderr:\n%s", &stderr)
	}
}

// makeNoise meets everything that the library has something to say about: refused dials, failed handshakes,
// lost connections, strange answers, an expired session.
func makeNoise() error {
	s := &server{peers: make(chan *peer, 100), live: make(map[*peer]struct{})}
	defer s.close()
	var met int
	s.greet = func(p *peer, _ jute.ConnectRequest) bool {
		switch met++; met {
		case 1:
			p.cut()
		case 2:
			p.send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: 0, Code: jute.CodeSystemError}))
		case 3, 4:
			return false
		default:
			p.expire()
		}
		return true
	}
	states := make(chan wire.State, 100)
	cfg := dialTo(network{"a:1": s, "b:1": nil})
	cfg.SessionTimeout, cfg.ConnectTimeout, cfg.CloseWait = 10*time.Second, 5*time.Second, time.Second
	cfg.Logger = discardLogger
	cfg.OnState = func(s wire.State) { states <- s }
	cfg.OnUnsent = func([]*wire.Request) {}
	c, err := wire.Open(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; {
		select {
		case state := <-states:
			switch state {
			case wire.Connected:
				p := <-s.peers
				for p.session == 0 {
					p = <-s.peers
				}
				p.answer(12, 1, jute.CodeOK, nil)
				p.cut()
				n++
			case wire.Expired:
				if n != 2 {
					return fmt.Errorf("connected %d times", n)
				}
				return nil
			}
		case <-time.After(patience):
			return errors.New("waited too long")
		}
	}
}
