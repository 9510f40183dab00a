package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// ErrNotConnected is returned by Submit while there is no connection to a server: the request was not accepted.
var ErrNotConnected = errors.New("wire: not connected")

// State is a state of a Conn.
type State int

// The states. Expired and AuthFailed are final.
const (
	Disconnected State = iota
	Connected
	ConnectedReadOnly
	Expired
	AuthFailed
)

// Config has the settings of a Conn; Servers, the timeouts, Dial, Logger, OnUnsent and OnState must be set.
type Config struct {
	Servers        []string // host:port
	Hosts          *Hosts   // shared by the sessions of a client; may be nil
	Chroot         string   // "" or an absolute path without a trailing slash
	SessionTimeout time.Duration
	TickTime       time.Duration // of the servers; 0 if it is unknown
	ConnectTimeout time.Duration // bounds one dial and its handshake
	CloseWait      time.Duration // bounds the close of the session at the server
	ReadOnly       bool          // accept a server without a quorum
	Auth           []jute.Auth
	// Dial opens a connection. It may ignore the end of its context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Secure, if it is set, starts TLS on a connection to a host of Servers.
	Secure func(ctx context.Context, nc net.Conn, host string) (net.Conn, error)
	// Resolve, if it is set, returns the addresses of a host, which are all tried. Without it Dial gets the name.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Refresh, if it is set, is called before each dial, and may call UpdateServers. It ends with its context.
	Refresh func(ctx context.Context)
	// OnFailure, if it is set, gets the first failure to connect after a connection. It must not block.
	OnFailure func(err error)
	// Wall is the wall clock, nil for that of the system.
	Wall   func() time.Time
	Logger *slog.Logger
	// MaxReply is the size in bytes of the largest answer that is read; 0 is 64 MiB. A larger answer fails its own request
	// with ErrReplyTooLarge.
	MaxReply int
	// OnUnsent gets the requests that were accepted and not sent before their connection ended, in order, before a request
	// can be sent on the next connection. It must not block.
	OnUnsent func([]*Request)
	// OnState gets each change before the watchers do. It gets Disconnected also when no server could be reached. It
	// runs on the goroutine that reads the connection: it must not block, and it may submit.
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

	ctx      context.Context // ends when no further connection is needed
	cancel   context.CancelFunc
	flush    chan struct{} // wakes the flusher
	quit     chan struct{} // ends the flusher
	farewell chan struct{} // closed when the library is connected to our farewell instead of a server
	wg       sync.WaitGroup
	endOnce  sync.Once

	farewellOnce sync.Once

	session    atomic.Int64
	timeoutNs  atomic.Int64 // as negotiated
	lastAnswer atomic.Int64 // by clock
	quorum     atomic.Int64 // proved by writes, by clock
	reliedAt   atomic.Int64 // the last beginning of a reliance on quorum, by clock
	unproved   atomic.Bool  // no write was answered since
	zxid       atomic.Int64 // highest seen in an answer

	mu       sync.Mutex
	end      error // the reason why nothing is accepted any more
	dialed   *link // the newest connection
	link     *link // the connection with an established session, or the one that is being drained
	xid      int32
	readOnly bool
	sawWrite bool // the session was once established by a server with a quorum
	watches  watches
}

// Open starts to connect and returns at once.
func Open(cfg Config) (*Conn, error) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with Close
	c := &Conn{
		cfg:      cfg,
		hosts:    cfg.Hosts,
		clock:    clock{epoch: time.Now(), wall: cfg.Wall},
		ctx:      ctx,
		cancel:   cancel,
		flush:    make(chan struct{}, 1),
		quit:     make(chan struct{}),
		farewell: make(chan struct{}),
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

// libraryLogger discards the library's log. It is about attempts that the states report too.
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

// Silence returns the time since then, with the time in which the machine was suspended.
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

// IsRefused reports whether the servers refuse the credentials: nothing will be accepted any more.
func (c *Conn) IsRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end == zk.ErrAuthFailed
}

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

// Submit puts r behind all requests submitted before. It returns an error if r was not accepted: ErrNotConnected
// without a connection or without that of its flight, otherwise the reason of the session's end. wait means that the
// caller waits for the answer: it then writes by itself if no other goroutine is writing, which saves a switch to
// another goroutine.
func (c *Conn) Submit(r *Request, wait bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return c.end
	}
	l := c.link
	if l == nil || l.dead || !r.Flight.accepts(l) { // on a dead connection nothing would complete it
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

// Withdraw takes r back if it is not encoded yet, and reports whether it was: then it is neither sent nor answered.
func (c *Conn) Withdraw(r *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link != nil && c.link.withdraw(r)
}

// Watches reports whether w, or any watcher if w is nil, watches path or is about to: the removal of a watch may follow
// a request that sets it.
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
	defer c.mu.Unlock()
	path, ws := r.serverPath(c), &c.watches
	if l := c.link; l != nil && !l.dead && c.end == nil && !ws.traffic.isLeaving(path, r.Watcher) &&
		(ws.has(r.Flags, path, r.Watcher) || r.Watcher != nil && ws.traffic.isSetting(path, r.Watcher)) {
		r.Op, r.Handler = jute.OpRemoveWatches, orphan{}
		l.submit(r)
		c.wakeFlusher(l)
	}
	ws.remove(r.Flags, path, r.Watcher)
}

// WatchCount returns how many watches are registered.
func (c *Conn) WatchCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches.n
}

// Load counts the pending work of a connection.
type Load struct {
	Server   string // of the connection; "" without one
	InFlight int    // requests that were sent and are not answered
	Queued   int    // requests that were accepted and not sent
	Watches  int    // that are registered
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

// Expire refuses further requests, gives back the unsent ones, so that they come before those of the next session, and
// sends the watchers the end of the session. Call Abandon after it.
func (c *Conn) Expire() {
	c.stop(zk.ErrSessionExpired)
	c.mu.Lock()
	var unsent []*Request
	if c.link != nil {
		unsent = c.link.takeUnsent()
	}
	c.mu.Unlock()
	if len(unsent) > 0 {
		c.cfg.OnUnsent(unsent)
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
			<-c.farewell
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

// stop refuses further requests with the first reason. It reports whether why is that reason.
func (c *Conn) stop(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.end == nil
	if first {
		c.end = why
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
	if old != nil { // the library has given it up without reading its end
		old.lost()
	}
	if c.hosts.pause(c.ctx) != nil || !c.refresh() {
		return c.sayFarewell(), nil
	}
	// A share for each server, so that the session outlives a pass over mute servers.
	share := c.SessionTimeout() / time.Duration(c.hosts.size())
	t, patience := c.hosts.pick(min(c.cfg.ConnectTimeout, share))
	start := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	nc, t, err := c.open(ctx, t)
	if err != nil {
		c.failed(err)
		c.reportExhausted()
		return nil, err
	}
	l := newLink(c, &attempt{Conn: nc, target: t}, t.server)
	_ = nc.SetDeadline(start.Add(patience))
	c.mu.Lock()
	c.dialed = l
	c.mu.Unlock()
	if c.ctx.Err() != nil { // finish did not see l
		l.cut()
	}
	return l, nil
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
	if ended { // the caller that has ended the session is about to end ctx
		<-c.ctx.Done()
	}
	return c.ctx.Err() == nil
}

// open opens a connection to an address of t.
func (c *Conn) open(ctx context.Context, t target) (net.Conn, target, error) {
	if t.address == "" {
		addresses, err := c.resolve(ctx, t.server)
		if err != nil {
			c.hosts.dialing(t)
			return nil, t, fmt.Errorf("%s: %w", t.server, withoutContext(err))
		}
		t = c.hosts.expand(t.server, addresses)
	}
	c.hosts.dialing(t)
	nc, err := c.connect(ctx, t)
	return nc, t, err
}

// failed records a failure to connect.
func (c *Conn) failed(err error) {
	if err != nil && c.ctx.Err() == nil && c.hosts.failed(err) && c.cfg.OnFailure != nil {
		c.cfg.OnFailure(err)
	}
}

func (c *Conn) report(s State) { c.cfg.OnState(s) }

// established runs inside the Read that returns the connect response, so nothing of a user can be on the wire yet.
func (c *Conn) established(l *link, resp jute.ConnectResponse) error {
	if resp.SessionID == 0 || resp.TimeoutMs == 0 { // the library would panic on a session without a timeout
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
	l.unheard = resp.ReadOnly && c.sawWrite
	c.mu.Unlock()
	l.established(timeout)
	l.noteAnswer(l.greetedAt)
	c.hosts.established(c)

	c.mu.Lock()
	c.readOnly = resp.ReadOnly
	c.sawWrite = c.sawWrite || !resp.ReadOnly
	for i := range c.cfg.Auth {
		l.append(jute.XidAuth, jute.OpAuth, jute.AppendAuth(nil, &c.cfg.Auth[i]))
	}
	op, bodies := c.watches.frames(c.zxid.Load())
	for _, b := range bodies {
		l.append(jute.XidSetWatches, op, b)
	}
	c.link = l
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
		final := c.end == zk.ErrAuthFailed
		c.mu.Unlock()
		if final {
			return
		}
		c.noteFailure("connection lost")
		c.report(Disconnected)
		c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
	} else {
		c.failedToConnect()
	}
}

// failedToConnect records that the handshake with the server that was dialed last has failed.
func (c *Conn) failedToConnect() {
	c.noteFailure("handshake")
	c.reportExhausted()
}

// noteFailure records the failure of the connection that was dialed last.
func (c *Conn) noteFailure(what string) {
	c.mu.Lock()
	l := c.dialed
	c.mu.Unlock()
	if l == nil {
		return
	}
	if a, ok := l.Conn.(*attempt); ok {
		c.failed(a.failure(what))
	}
}

// reportExhausted reports Disconnected when no server could be reached.
func (c *Conn) reportExhausted() {
	if c.hosts.exhausted() {
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
