package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/sasl"
)

// ErrNotConnected is returned by Submit while there is no connection to a server: the request was not accepted.
var ErrNotConnected = errors.New("wire: not connected")

// State is a state of a Conn.
type State int

// The states. Expired and AuthFailed are final. LoginRefused says that no server accepts the login; they are tried
// again.
const (
	Disconnected State = iota
	Connected
	ConnectedReadOnly
	Expired
	AuthFailed
	LoginRefused
)

// Config has the settings of a Conn; Servers, the timeouts, Dial, Logger, OnUnsent and OnState must be set.
type Config struct {
	Servers        []string // host:port
	Hosts          *Hosts   // shared by the sessions of a client; may be nil
	Chroot         string   // "" or an absolute path without a trailing slash
	SessionTimeout time.Duration
	TickTime       time.Duration // the tickTime of the servers; 0 if unknown
	ConnectTimeout time.Duration // bounds one dial and its handshake
	CloseWait      time.Duration // bounds the close of the session at the server
	ReadOnly       bool          // accept a server without a quorum
	Auth           []jute.Auth
	Login          sasl.Mechanism // may be nil
	// Probe asks a server that has not served this client before whether it requires a login.
	Probe bool
	// Dial opens a connection. It may ignore the end of its context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Secure, if it is set, starts TLS on a connection to a host of Servers.
	Secure func(ctx context.Context, nc net.Conn, host string) (net.Conn, error)
	// Resolve, if it is set, returns the addresses of a host, which are all tried. Without it Dial gets the name.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Order, if it is set, returns the servers in the order in which they are to be tried. It ends with its context.
	Order func(ctx context.Context, servers []string) []string
	// Refresh, if it is set, is called before each dial, and may call UpdateServers. It ends with its context.
	Refresh func(ctx context.Context)
	// OnFailure, if it is set, gets the first failure to connect after a connection. It must not block.
	OnFailure func(err error)
	// OnLoss, if it is set, gets the reason why an established connection ended. It must not block.
	OnLoss func(err error)
	// Wall is the wall clock; nil means the clock of the system.
	Wall   func() time.Time
	Logger *slog.Logger
	// MaxReply is the size in bytes of the largest answer that is read; 0 is 64 MiB. A larger answer fails its own request
	// with ErrReplyTooLarge.
	MaxReply int
	// Zxid is the highest zxid known from earlier sessions: see [Conn.Known].
	Zxid int64
	// OnUnsent is called at the end of each connection, before a request can be sent on the next one. It gets the requests
	// that were accepted and not sent, in order. It must not block.
	OnUnsent func([]*Request)
	// OnState gets each change before the watchers do. It also gets Disconnected when no server could be reached. It runs
	// on the goroutine that reads the connection: it must not block, and it may submit.
	OnState func(State)
}

func (c *Config) maxReply() int {
	if c.MaxReply <= 0 {
		return maxFrame
	}
	return c.MaxReply
}

// Conn is one session with a ZooKeeper ensemble, across all its connections. It ends with the session; the next
// session is another Conn. All methods are safe for concurrent use.
type Conn struct {
	cfg    Config
	zk     *zk.Conn
	events <-chan zk.Event // closed when the library's goroutines have ended
	hosts  *Hosts
	clock  clock

	ctx        context.Context // ends when no further connection is needed
	cancel     context.CancelFunc
	flush      chan struct{} // wakes the flusher
	quit       chan struct{} // ends the flusher
	stubDialed chan struct{} // closed when the library is connected to a closeStub instead of a server
	wg         sync.WaitGroup
	endOnce    sync.Once

	stubOnce sync.Once

	session          atomic.Int64
	timeoutNs        atomic.Int64 // the session timeout that the server granted
	lastAnswer       atomic.Int64 // when the last answered request was sent, by clock
	quorum           atomic.Int64 // the latest time at which a majority kept the session, as writes prove it, by clock
	quorumRequiredAt atomic.Int64 // when RequireQuorum was last called, by clock
	unproved         atomic.Bool  // no write that was sent after quorumRequiredAt was answered
	over             atomic.Bool  // end is set
	zxid             atomic.Int64 // highest zxid in an answer
	pinged           atomic.Int64 // highest zxid in an answer to a ping

	mu        sync.Mutex
	end       error // the reason why requests are refused; nil while they are accepted
	dialed    *link // the newest connection
	link      *link // the connection with an established session, or the one that is being drained
	newest    *link // the newest connection with an established session
	xid       int32
	readOnly  bool
	sawQuorum bool // the session was once established by a server with a quorum
	watches   watches
}

// Zxid returns the highest zxid in an answer to a request of this session. It is older than every change by a request
// that is not answered yet. Before the first answer it returns the highest zxid of earlier sessions, or 0. After that
// earlier sessions do not count: the servers may be others by now, or restored, with lower zxids.
func (c *Conn) Zxid() int64 {
	if zxid := c.zxid.Load(); zxid > 0 {
		return zxid
	}
	return c.cfg.Zxid
}

// Known returns the highest zxid that a server is known to have, or 0. Answers to pings count too. It is older than
// every change by a request that is not sent yet.
func (c *Conn) Known() int64 {
	if zxid := max(c.zxid.Load(), c.pinged.Load()); zxid > 0 {
		return zxid
	}
	return c.cfg.Zxid
}

// Open starts to connect and returns at once.
func Open(cfg Config) (*Conn, error) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with Close
	c := &Conn{
		cfg:        cfg,
		hosts:      cfg.Hosts,
		clock:      clock{epoch: time.Now(), wall: cfg.Wall},
		ctx:        ctx,
		cancel:     cancel,
		flush:      make(chan struct{}, 1),
		quit:       make(chan struct{}),
		stubDialed: make(chan struct{}),
	}
	c.timeoutNs.Store(int64(cfg.SessionTimeout))
	c.unproved.Store(true)
	if c.hosts == nil {
		c.hosts = new(Hosts)
	}
	c.hosts.update(cfg.Servers)
	var err error
	c.zk, c.events, err = zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithDialer(c.dial),
		zk.WithHostProvider(hostProvider{}),
		zk.WithLogger(libraryLogger{ctx, cfg.Logger}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(libraryBuffer),
		zk.WithMaxConnBufferSize(libraryBuffer),
	)
	if err != nil {
		cancel()
		return nil, err
	}
	c.wg.Go(c.flusher)
	return c, nil
}

// libraryBuffer is enough for the frames of the library: handshake, pings and close request.
const libraryBuffer = 4096

// libraryLogger logs the library's messages at level debug: the states report the same attempts.
type libraryLogger struct {
	ctx context.Context
	log *slog.Logger
}

func (l libraryLogger) Printf(format string, args ...any) {
	if l.log.Enabled(l.ctx, slog.LevelDebug) {
		l.log.DebugContext(l.ctx, fmt.Sprintf(format, args...))
	}
}

// SessionID returns the id of the session, 0 before it is established.
func (c *Conn) SessionID() int64 { return c.session.Load() }

// SessionTimeout returns the session timeout that the server has granted; before that, the requested one.
func (c *Conn) SessionTimeout() time.Duration { return time.Duration(c.timeoutNs.Load()) }

// LastAnswer returns when the last answered request or ping was sent. The server keeps the session from the time at
// which it reads a request, which was then or later. The time of the read of the answer proves less: the answer may
// have waited for this process, or for the network. Watch events prove nothing: the server sends them without a
// request.
func (c *Conn) LastAnswer() time.Time { return c.clock.at(c.lastAnswer.Load()) }

// Silence returns the time since LastAnswer, with the time in which the machine was suspended.
func (c *Conn) Silence() time.Duration { return time.Duration(c.now() - c.lastAnswer.Load()) }

// LastError returns the last failure of a connect or of a connection. It is nil while a connection stands, and before
// the first try has ended.
func (c *Conn) LastError() error { return c.hosts.lastError() }

// SentAt returns when r was written, or zero.
func (c *Conn) SentAt(r *Request) (at time.Time) {
	if r.encoded {
		at = c.clock.at(r.sent)
	}
	return at
}

// now returns the time of the clock of the session.
func (c *Conn) now() int64 { return c.clock.now() }

// IsConnected reports whether requests are accepted now.
func (c *Conn) IsConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end == nil && c.link != nil && !c.link.dead
}

// Refusal returns why the servers refuse the credentials or the login, and nil if they do not. Nothing is accepted
// then, but a server may accept the login later.
func (c *Conn) Refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == zk.ErrAuthFailed {
		return c.end
	}
	return c.hosts.refusal()
}

// IsOver reports whether nothing is accepted any more.
func (c *Conn) IsOver() bool { return c.over.Load() }

// UpdateServers replaces the list of servers. If the current server is not in the list any more, the session moves to a
// server that is, as soon as one accepts it.
func (c *Conn) UpdateServers(servers []string) {
	c.hosts.update(servers)
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil {
		c.follow(l)
	}
}

// Submit puts r behind all requests submitted before. It returns an error if r was not accepted: ErrNotConnected if
// there is no connection or the connection of r's flight has ended, the refusal if no server accepts the login,
// otherwise the reason of the session's end. wait means that the caller waits for the answer: it then writes by itself
// if no other goroutine is writing, which saves a switch to another goroutine.
func (c *Conn) Submit(r *Request, wait bool) error { return c.SubmitUnless(nil, r, wait) }

// SubmitUnless is Submit, and returns ErrNotConnected while held is true: older requests wait, which OnUnsent has given
// back before this connection stood. held may be nil.
func (c *Conn) SubmitUnless(held *atomic.Bool, r *Request, wait bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return c.end
	}
	l := c.live()
	if l == nil || held != nil && held.Load() || !r.Flight.accepts(l) {
		if refusal := c.hosts.refusal(); refusal != nil {
			return refusal
		}
		return ErrNotConnected
	}
	l.submit(r)
	switch {
	case l.dead || len(l.out) == 0:
	case wait && !l.writing:
		l.write(true)
	default:
		c.wakeFlusher(l)
	}
	return nil
}

// live returns the connection on which requests can travel, nil without one: on a dead one nothing would complete them.
// mu is held.
func (c *Conn) live() *link {
	if l := c.link; c.end == nil && l != nil && !l.dead {
		return l
	}
	return nil
}

// AddAuth adds credentials, ahead of the requests that are submitted later.
func (c *Conn) AddAuth(a jute.Auth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Auth = append(c.cfg.Auth, a)
	if l := c.live(); l != nil {
		l.append(jute.XidAuth, jute.OpAuth, jute.AppendAuth(nil, &a))
		c.wakeFlusher(l)
	}
}

// Withdraw takes r back if it is not encoded yet. It returns true if it did: r is then neither sent nor answered.
func (c *Conn) Withdraw(r *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link != nil && c.link.withdraw(r)
}

// Unanswered describes r when its caller gives up: the server that r was sent to and the time since then, "" if r is
// not in flight, and whether r was sent as a write in any attempt.
func (c *Conn) Unanswered(r *Request) (server string, since time.Duration, wrote bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.inFlight {
		server, since = r.server, time.Duration(c.now()-r.sent)
	}
	return server, since, r.wrote
}

// Watches reports whether w, or any watcher if w is nil, watches path or is about to. A watch that is still being set
// counts, because a removal may follow the request that sets it.
func (c *Conn) Watches(t WatcherType, path string, w Watcher) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	path = withChroot(path, c.cfg.Chroot)
	return c.watches.has(t, path, w) || w != nil && c.watches.traffic.isSetting(path, w)
}

// Forget removes the watcher of r, or all if it has none, from the registry. The server's watch ends with the
// connection or, if there is one, by a removal without a receiver of its answer.
func (c *Conn) Forget(r *Request) {
	c.mu.Lock()
	path, ws := r.serverPath(c), &c.watches
	if l := c.link; l != nil && !l.dead && c.end == nil && !ws.traffic.isLeaving(path, r.Watcher) &&
		(ws.has(r.Flags, path, r.Watcher) || r.Watcher != nil && ws.traffic.isSetting(path, r.Watcher)) {
		r.Op, r.Handler = jute.OpRemoveWatches, orphan{}
		l.submit(r)
		c.wakeFlusher(l)
	}
	removed := ws.remove(r.Flags, path, r.Watcher)
	c.mu.Unlock()
	c.notifyRemoved(removed, path)
}

// WatchCount returns how many watches are registered.
func (c *Conn) WatchCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches.n
}

// Load counts the pending work of a connection.
type Load struct {
	Server   string // the server of the connection; "" without one
	InFlight int    // number of requests that were sent and are not answered
	Queued   int    // number of requests that were accepted and not sent
	Watches  int    // number of registered watches
}

// Load returns the pending work of c.
func (c *Conn) Load() (l Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.Watches = c.watches.n
	if c.link != nil && !c.link.dead {
		l.Server, l.InFlight, l.Queued = c.link.address, c.link.flight.len(), c.link.waiting.len()
	}
	return l
}

// Close closes the session at the server, behind all submitted requests, and returns when no goroutine of c is left.
// Without a connection it only ends c. Watchers get an event for the end of the session.
func (c *Conn) Close() { c.finish(zk.ErrClosing, true) }

// Refuse refuses further requests, for a Conn that is about to be given up. It does not wait. Call Expire after it.
func (c *Conn) Refuse() { c.stop(zk.ErrSessionExpired) }

// Expire refuses further requests, ends the connection, and returns when those in flight have ended and the unsent ones
// were given back, so that all come before those of the next session. It sends the watchers the end of the session.
// Call Abandon after it. The goroutine that reads a live connection must not call it.
func (c *Conn) Expire() {
	c.stop(zk.ErrSessionExpired)
	c.cancel() // the end of the connection is no loss
	c.mu.Lock()
	l := c.newest
	c.mu.Unlock()
	if l != nil {
		l.cut()
		<-l.over
	}
	c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateExpired, Err: zk.ErrSessionExpired})
}

// Abandon ends c without a request to the server, which keeps the session until its own timeout.
func (c *Conn) Abandon() { c.finish(zk.ErrSessionExpired, false) }

func (c *Conn) finish(why error, closeSession bool) {
	c.stop(why)
	c.endOnce.Do(func() {
		limit := time.AfterFunc(c.cfg.CloseWait, c.cutDialed)
		defer limit.Stop()
		if closeSession && c.settle() {
			c.zk.Close()
			c.cancel()
			c.cutDialed()
		} else {
			c.cancel()
			c.cutDialed() // after cancel: a dial that is missed here gets the end of ctx
			<-c.stubDialed
			c.zk.Close()
		}
		for range c.events {
			continue // until the library's goroutines have ended
		}
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		if l != nil {
			l.drain()
			l.setOver()
		}
		close(c.quit)
		c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateExpired, Err: why})
	})
	c.wg.Wait()
}

// settle waits until all submitted requests are answered: the library waits only a second for the answer to its close
// request, which must come behind them. It reports whether there is a connection for it.
func (c *Conn) settle() bool {
	c.mu.Lock()
	l := c.link
	if l == nil || l.dead {
		c.mu.Unlock()
		return false
	}
	settled := make(chan struct{})
	l.settled = settled
	l.settle()
	c.mu.Unlock()
	<-settled
	c.mu.Lock()
	defer c.mu.Unlock()
	return !l.dead
}

func (c *Conn) cutDialed() {
	c.mu.Lock()
	l := c.dialed
	c.mu.Unlock()
	if l != nil {
		l.cut()
	}
}

// stop refuses further requests. The reason of the first call stays; stop returns true for that call.
func (c *Conn) stop(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.end == nil
	if first {
		c.end = why
		c.over.Store(true)
	}
	return first
}

// broadcast sends a session event to all watchers. A final one also ends all watches.
func (c *Conn) broadcast(ev zk.Event) {
	c.mu.Lock()
	all := c.watches.all()
	if ev.State == zk.StateExpired || ev.State == zk.StateAuthFailed {
		c.watches.sets, c.watches.n = [kinds]map[string]*watcherSet{}, 0
	}
	c.mu.Unlock()
	for _, w := range all {
		w.Notify(ev)
	}
}

// dial is the library's dialer. It chooses the next server.
func (c *Conn) dial(string, string, time.Duration) (net.Conn, error) {
	c.mu.Lock()
	old := c.link
	c.mu.Unlock()
	if old != nil { // the library stopped reading before it saw the end of the connection
		old.lost()
	}
	if c.hosts.pause(c.ctx) != nil || !c.refresh() {
		return c.dialCloseStub(), nil
	}
	c.order()
	// A share for each server, so that the session outlives a pass over silent servers.
	share := c.SessionTimeout() / time.Duration(c.hosts.size())
	t, patience := c.hosts.pick(min(c.cfg.ConnectTimeout, share))
	start := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	nc, t, exchange, err := c.open(ctx, t)
	if err != nil {
		c.failed(err)
		c.reportExhausted()
		return nil, err
	}
	l := newLink(c, &attempt{Conn: nc, target: t}, t.server)
	l.exchange, l.loginEnd = exchange, start.Add(patience)
	_ = nc.SetDeadline(start.Add(patience))
	c.mu.Lock()
	c.dialed = l
	c.mu.Unlock()
	if c.ctx.Err() != nil { // finish did not see l
		l.cut()
	}
	return l, nil
}

// order asks the program for the order of the servers, if a pass begins. A late answer is none.
func (c *Conn) order() {
	if c.cfg.Order == nil {
		return
	}
	if servers, version, ask := c.hosts.unordered(); ask {
		c.orderList(servers, version)
	}
}

// orderList asks the program for the order of this version of the list.
func (c *Conn) orderList(servers []string, version int) {
	ctx, cancel := context.WithTimeout(c.ctx, minPatience)
	defer cancel()
	ordered, err := call(ctx, c.hosts, "order the servers",
		func() ([]string, error) { return c.cfg.Order(ctx, slices.Clone(servers)), nil }, nil)
	if p := (*usercode.Panic)(nil); errors.As(err, &p) {
		c.cfg.Logger.ErrorContext(ctx, "panic in the order of the servers", slog.Any("error", err))
	}
	if err == nil {
		c.hosts.setOrder(ordered, version)
	}
}

// refresh updates the servers, and reports whether a connection to them is still needed.
func (c *Conn) refresh() bool {
	if c.cfg.Refresh != nil {
		ctx, cancel := context.WithTimeout(c.ctx, minPatience)
		c.cfg.Refresh(ctx)
		cancel()
	}
	c.mu.Lock()
	ended := c.end != nil
	c.mu.Unlock()
	if ended { // the goroutine that ended the session is about to end ctx
		<-c.ctx.Done()
	}
	return c.ctx.Err() == nil
}

// open opens a connection to an address of t, and begins its login.
func (c *Conn) open(ctx context.Context, t target) (net.Conn, target, sasl.Exchange, error) {
	if t.address == "" {
		addresses, err := c.resolve(ctx, t.server)
		if err != nil {
			c.hosts.dialing(t)
			return nil, t, nil, fmt.Errorf("%s: %w", t.server, withoutContext(err))
		}
		t = c.hosts.expand(t.server, addresses)
	}
	c.hosts.dialing(t)
	exchange, err := c.startLogin(ctx, t)
	if err != nil {
		return nil, t, nil, err
	}
	nc, err := c.connect(ctx, t)
	return nc, t, exchange, err
}

// failed records a failure to connect. A refusal by all servers has a state of its own.
func (c *Conn) failed(err error) {
	if err != nil && c.ctx.Err() == nil && c.hosts.failed(err) && c.cfg.OnFailure != nil && c.hosts.refusal() == nil {
		c.cfg.OnFailure(err)
	}
}

func (c *Conn) report(s State) { c.cfg.OnState(s) }

// established runs inside the Read that returns the connect response, so nothing of a user can be on the wire yet.
func (c *Conn) established(l *link, resp jute.ConnectResponse) error {
	if resp.SessionID == 0 || resp.TimeoutMs == 0 { // this is no session: the library does not see it
		c.stop(zk.ErrSessionExpired)
		c.cancel()
		c.report(Expired)
		c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateExpired, Err: zk.ErrSessionExpired})
		return zk.ErrSessionExpired
	}
	c.session.Store(resp.SessionID)
	timeout := time.Duration(resp.TimeoutMs) * time.Millisecond
	c.timeoutNs.Store(int64(timeout))
	c.mu.Lock()
	l.provesNothing = resp.ReadOnly && c.sawQuorum
	c.mu.Unlock()
	l.established(timeout)
	l.noteAnswer(l.connectSentAt)
	c.hosts.established(c)

	c.mu.Lock()
	c.readOnly = resp.ReadOnly
	c.sawQuorum = c.sawQuorum || !resp.ReadOnly
	for i := l.authSent; i < len(c.cfg.Auth); i++ { // the probe has sent the others
		l.append(jute.XidAuth, jute.OpAuth, jute.AppendAuth(nil, &c.cfg.Auth[i]))
	}
	op, bodies := c.watches.frames(c.zxid.Load())
	l.watchesOp, l.settingWatches, l.watchesSent = op, len(bodies), c.now()
	l.watchesFirst = len(bodies) > 0 && c.hosts.hasHungUp(op)
	for _, b := range bodies {
		l.append(jute.XidSetWatches, op, b)
	}
	c.link, c.newest = l, l
	c.wakeFlusher(l)
	c.mu.Unlock()

	ev := zk.Event{Type: zk.EventSession, State: zk.StateHasSession, Server: l.address}
	if resp.ReadOnly {
		ev.State = zk.StateConnectedReadOnly
		c.report(ConnectedReadOnly)
		c.broadcast(ev)
		c.wg.Go(func() { c.seekQuorum(l) })
		return nil
	}
	c.report(Connected)
	c.broadcast(ev)
	c.follow(l)
	return nil
}

// down runs on the reader when l is lost, after everything that was in flight on it has been answered.
func (c *Conn) down(wasLinked bool) {
	if wasLinked {
		c.mu.Lock()
		final := c.end == zk.ErrAuthFailed || c.end == zk.ErrSessionExpired // these have their own events
		c.mu.Unlock()
		if final {
			return
		}
		if err := c.failure("connection lost"); err != nil && c.ctx.Err() == nil {
			c.hosts.lost(err)
			if c.cfg.OnLoss != nil {
				c.cfg.OnLoss(err)
			}
		}
		c.report(Disconnected)
		c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
	} else {
		c.failedToConnect()
	}
}

// failedToConnect records that the handshake with the server that was dialed last has failed.
func (c *Conn) failedToConnect() {
	err := c.failure("handshake")
	if errors.Is(err, io.EOF) && c.cfg.Secure == nil {
		err = fmt.Errorf("%w: perhaps the server does not serve now, or has TLS alone on this port", err)
	}
	c.failed(err)
	c.reportExhausted()
}

// failure returns the reason why the connection that was dialed last has ended; nil if this process closed it without a
// reason.
func (c *Conn) failure(what string) error {
	c.mu.Lock()
	l := c.dialed
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	if a, ok := l.Conn.(*attempt); ok {
		return a.failure(what)
	}
	return nil
}

// Peer returns the server of the connection, with its address if that differs from the name; "" without a connection.
func (c *Conn) Peer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.link.dead {
		return ""
	}
	return c.link.name()
}

// reportExhausted reports Disconnected when no server could be reached, and LoginRefused when all refuse the login.
func (c *Conn) reportExhausted() {
	switch {
	case c.hosts.refusal() != nil && c.ctx.Err() == nil:
		c.report(LoginRefused)
	case c.hosts.exhausted():
		c.report(Disconnected)
	}
}

func (c *Conn) authFailed() {
	if !c.stop(zk.ErrAuthFailed) {
		return
	}
	c.cancel() // the server closes the connection for these credentials each time
	c.report(AuthFailed)
	c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateAuthFailed, Err: zk.ErrAuthFailed})
}

// wakeFlusher is called with mu held.
func (c *Conn) wakeFlusher(l *link) {
	if l.writing || len(l.out) == 0 {
		return
	}
	select {
	case c.flush <- struct{}{}:
	default:
	}
}

func (c *Conn) flusher() {
	for {
		select {
		case <-c.flush:
		case <-c.quit:
			return
		}
		c.mu.Lock()
		if l := c.link; l != nil && !l.dead && !l.writing {
			l.write(false)
		}
		c.mu.Unlock()
	}
}
