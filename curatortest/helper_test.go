package curatortest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// limit bounds every wait of a test.
const limit = 2 * time.Minute

var must = testclient.Must

func newServer(tb testing.TB, opts ...curatortest.RealOption) *curatortest.RealServer {
	tb.Helper()
	testenv.RequireReal(tb)
	s, err := curatortest.NewRealServer(opts...)
	must(tb, err)
	tb.Cleanup(func() { closeServer(tb, s) })
	return s
}

func closeServer(tb testing.TB, s interface{ Close() error }) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

// session is a client of the plain library.
type session struct {
	*zk.Conn
	events <-chan zk.Event
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func newSession(tb testing.TB, addrs ...string) *session {
	tb.Helper()
	events := make(chan zk.Event, 1000) // the library's own has room for six, and drops the newest
	note := func(ev zk.Event) {
		for {
			select {
			case events <- ev:
				return
			default:
			}
			select {
			case <-events: // the oldest, which a test has not taken
			default:
			}
		}
	}
	conn, own, err := zk.Connect(addrs, 30*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithDialer(testenv.DialPlain), zk.WithEventCallback(note))
	must(tb, err)
	s := &session{conn, events}
	tb.Cleanup(func() {
		conn.Close()
		for range own { // until its goroutines have ended
		}
	})
	s.await(tb, zk.StateHasSession)
	return s
}

// await takes events until the connection is in the state.
func (s *session) await(tb testing.TB, want zk.State) {
	tb.Helper()
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case ev := <-s.events:
			if ev.Type == zk.EventSession && ev.State == want {
				return
			}
		case <-t.C:
			tb.Fatalf("no state %v", want)
		}
	}
}

// create creates a node; an ephemeral one with zk.FlagEphemeral.
func (s *session) create(tb testing.TB, path, data string, flags int32) {
	tb.Helper()
	_, err := s.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	must(tb, err)
}

// wantData fails if a node has other data.
func (s *session) wantData(tb testing.TB, path, want string) {
	tb.Helper()
	got, _, err := s.Get(path)
	must(tb, err)
	if string(got) != want {
		tb.Fatalf("%s has %q, want %q", path, got, want)
	}
}

// wantExists fails if a node is, or is not, there.
func (s *session) wantExists(tb testing.TB, path string, want bool) {
	tb.Helper()
	got, _, err := s.Exists(path)
	must(tb, err)
	if got != want {
		tb.Fatalf("%s exists: %t", path, got)
	}
}

// wantUndisturbed fails if the connection has changed.
func (s *session) wantUndisturbed(tb testing.TB) {
	tb.Helper()
	select {
	case ev := <-s.events:
		tb.Errorf("a bystander has noticed: %v", ev)
	default:
	}
}
