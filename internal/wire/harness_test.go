package wire_test

import (
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// client is a Conn and what it reports.
type client struct {
	*wire.Conn
	states chan wire.State
}

// lose completes requests that were not sent.
func lose(unsent []*wire.Request) {
	for _, r := range unsent {
		r.Err = jute.ErrConnectionLoss
		r.Handler.Answered(r)
	}
}

// open opens a Conn with what cfg does not say set to what suits a test, and closes it at the end of the
// test.
func open(tb testing.TB, cfg wire.Config) *client {
	tb.Helper()
	c := &client{states: make(chan wire.State, 100_000)}
	cfg.SessionTimeout = cmpOr(cfg.SessionTimeout, 30*time.Second)
	cfg.ConnectTimeout = cmpOr(cfg.ConnectTimeout, 10*time.Second)
	cfg.CloseWait = cmpOr(cfg.CloseWait, 5*time.Second)
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.Logger == nil {
		cfg.Logger = discardLogger
	}
	if cfg.OnUnsent == nil {
		cfg.OnUnsent = lose
	}
	onState := cfg.OnState
	cfg.OnState = func(s wire.State) {
		if onState != nil {
			onState(s)
		}
		c.states <- s
	}
	conn, err := wire.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	c.Conn = conn
	tb.Cleanup(conn.Close)
	return c
}

var discardLogger = slog.New(slog.DiscardHandler)

func cmpOr(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// dialTo is the configuration for servers in memory; the client tries them in any order.
func dialTo(n network) wire.Config {
	cfg := wire.Config{Dial: n.dial}
	for address := range n {
		cfg.Servers = append(cfg.Servers, address)
	}
	slices.Sort(cfg.Servers)
	return cfg
}

// connect opens a Conn to s over TCP and waits until it stands. In real time a first try may be too slow, and given up.
func connect(tb testing.TB, s *server) (*client, *peer) {
	tb.Helper()
	c := open(tb, wire.Config{Servers: []string{s.listen(tb)}})
	c.await(tb, wire.Connected)
	return c, s.peerOf(tb, c)
}

// connectPiped opens a Conn to s in memory and waits until it stands.
func connectPiped(tb testing.TB, s *server) (*client, *peer) {
	tb.Helper()
	c := open(tb, dialTo(network{"a:1": s}))
	c.want(tb, wire.Connected)
	return c, s.next(tb)
}

// want takes the next state and fails if it is another.
func (c *client) want(tb testing.TB, want wire.State) {
	tb.Helper()
	if got := receive(tb, c.states); got != want {
		tb.Fatalf("state %d, want %d", got, want)
	}
}

// await takes states until want comes.
func (c *client) await(tb testing.TB, want wire.State) {
	tb.Helper()
	for receive(tb, c.states) != want {
	}
}

// answers takes answers in their order.
type answers chan *wire.Request

// newAnswers has room for all answers of a test: the reader must not block.
func newAnswers() answers { return make(answers, 300_000) }

func (a answers) Answered(r *wire.Request) { a <- r }

// handlerFunc is a function as a Handler.
type handlerFunc func(r *wire.Request)

func (f handlerFunc) Answered(r *wire.Request) { f(r) }

// get is a getData of path that is answered to a.
func get(path string, a wire.Handler) *wire.Request {
	return &wire.Request{Request: jute.Request{Op: jute.OpGetData, Path: path}, Handler: a}
}

// watch is a request that sets a watch.
func watch(op jute.Op, path string, w wire.Watcher, a wire.Handler) *wire.Request {
	return &wire.Request{Request: jute.Request{Op: op, Path: path}, Watcher: w, Handler: a}
}

// addWatch is a request for a persistent watch.
func addWatch(mode int32, path string, w wire.Watcher, a wire.Handler) *wire.Request {
	r := watch(jute.OpAddWatch, path, w, a)
	r.Flags = mode
	return r
}

// removal is a request that removes watches.
func removal(t wire.WatcherType, path string, w wire.Watcher) *wire.Request {
	r := watch(jute.OpRemoveWatches, path, w, nil)
	r.Flags = t
	return r
}

// ask submits r, which must be accepted, and waits for its answer.
func (c *client) ask(tb testing.TB, r *wire.Request) *wire.Request {
	tb.Helper()
	a := make(answers, 1)
	r.Handler = a
	c.submit(tb, r)
	return receive(tb, a)
}

// submit submits r, which must be accepted.
func (c *client) submit(tb testing.TB, r *wire.Request) {
	tb.Helper()
	if err := c.Submit(r, false); err != nil {
		tb.Fatalf("submit: %v", err)
	}
}

// watcher takes events in their order.
type watcher chan zk.Event

func newWatcher() watcher { return make(watcher, 10_000) }

func (w watcher) Notify(ev zk.Event) { w <- ev }

// nodeEvent takes the next event of a node, past those of the session.
func (w watcher) nodeEvent(tb testing.TB) zk.Event {
	tb.Helper()
	for {
		if ev := receive(tb, w); ev.Type != zk.EventSession {
			return ev
		}
	}
}
