package framework

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// connection keeps a session with the ensemble: one wire.Conn after the other, each for one session. It decides the
// connection state, by the states of the wire and by its own clock, and publishes it in order.
type connection struct {
	cfg       *config
	executor  *exec.Executor
	telemetry *telemetry.Telemetry
	publish   func(ConnectionState)           // in order; must not block
	unhandled func(message string, err error) // must not block

	failed func(err error) // the first failure to connect; must not block

	current  atomic.Pointer[wire.Conn]
	hosts    wire.Hosts // of all sessions
	follower *ensembleFollower
	wg       sync.WaitGroup // of those that are being abandoned or replaced

	mu        sync.Mutex
	closed    bool
	replacing bool            // the current Conn is over, and the next is not there yet
	refused   error           // why there will be no connection
	target    connectString   // of the current Conn
	state     ConnectionState // as published last
	connected bool            // once in its life, with a quorum
	relying   int             // how many rely on quorum heartbeats
	session   *Session        // the newest
	since     time.Time       // when the wait for a first session began
	suspended time.Duration   // the silence of the server when that state was published last
	clock     *time.Timer
	changed   chan struct{} // closed and replaced at each change
}

func newConnection(cfg *config, publish func(ConnectionState)) *connection {
	c := &connection{cfg: cfg, publish: publish, target: cfg.target, changed: make(chan struct{})}
	if cfg.heartbeats == heartbeatsAlways {
		c.relying = 1
	}
	c.follower = newEnsembleFollower(cfg.ensemble, c.follow)
	c.hosts.Jitter = cfg.jitter
	return c
}

// start opens the first Conn to the servers of a connect string. It is empty if a [ServerNotifier] has no servers yet:
// then the first servers that it reports open the Conn.
func (c *connection) start(target connectString) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.target = target
	c.follower.start() // its first lookup begins as soon as there is a Conn
	if len(target.servers) > 0 {
		if err := c.open(); err != nil {
			c.follower.stop()
			return err
		}
	}
	c.clock = time.AfterFunc(c.untilCheck(c.cfg.sessionTimeout), c.tick)
	return nil
}

// open opens a Conn for a new session. mu is held.
func (c *connection) open() error {
	var conn *wire.Conn
	opened := make(chan struct{}) // the Conn may report its state before Open has returned
	conn, err := wire.Open(wire.Config{
		Servers:        c.target.servers,
		Hosts:          &c.hosts,
		Chroot:         c.target.chroot,
		SessionTimeout: c.cfg.sessionTimeout,
		TickTime:       c.cfg.tickTime,
		ConnectTimeout: c.cfg.connectionTimeout,
		CloseWait:      c.cfg.maxCloseWait,
		ReadOnly:       c.cfg.readOnly,
		Auth:           c.cfg.auth,
		Dial:           c.cfg.dial,
		Secure:         c.cfg.secure(),
		Resolve:        c.cfg.resolve(),
		Refresh:        func(ctx context.Context) { c.follower.followNow(ctx) },
		OnFailure:      c.failed,
		Wall:           c.cfg.wall,
		Logger:         c.cfg.logger,
		MaxReply:       c.cfg.maxReply,
		OnUnsent:       c.executor.Unsent,
		OnState: func(s wire.State) {
			<-opened
			c.on(conn, s)
		},
	})
	if err != nil {
		return err
	}
	c.current.Store(conn)
	close(opened)
	return nil
}

// on takes a state of a Conn. It runs on the goroutine that reads that connection.
func (c *connection) on(conn *wire.Conn, s wire.State) {
	if c.take(conn, s) && (s == wire.Connected || s == wire.ConnectedReadOnly || s == wire.AuthFailed) {
		c.executor.Connected()
	}
}

// take applies a state of a Conn, and reports whether it was still the current one.
func (c *connection) take(conn *wire.Conn, s wire.State) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replacing || c.current.Load() != conn {
		return false
	}
	c.telemetry.SessionEvent(sessionEvents[s], conn.SessionID())
	switch s {
	case wire.Connected, wire.ConnectedReadOnly:
		c.up(conn, s == wire.ConnectedReadOnly)
	case wire.Disconnected:
		if c.state != Suspended && c.state != Lost {
			c.become(Suspended)
		}
		c.wind()
	case wire.Expired:
		c.lose()
		c.replace()
	case wire.AuthFailed: // no other Conn would fare better
		c.refused = zk.ErrAuthFailed
		c.lose()
		c.unhandled("the servers refuse the credentials", zk.ErrAuthFailed)
	}
	return true
}

// sessionEvents are Java's names for the states of a Conn.
var sessionEvents = map[wire.State]zk.State{
	wire.Connected:         zk.StateHasSession,
	wire.ConnectedReadOnly: zk.StateConnectedReadOnly,
	wire.Disconnected:      zk.StateDisconnected,
	wire.Expired:           zk.StateExpired,
	wire.AuthFailed:        zk.StateAuthFailed,
}

// up takes a connection that stands. mu is held.
func (c *connection) up(conn *wire.Conn, readOnly bool) {
	c.refused = nil
	if id := conn.SessionID(); c.session == nil || c.session.id != id || c.session.ctx.Err() != nil {
		if c.session != nil && c.state != Lost {
			c.lose() // the others do not have a read-only server's session
		}
		c.session = newSession(id)
	}
	switch {
	case readOnly:
		c.become(ReadOnly)
	case c.connected:
		c.become(Reconnected)
	default:
		c.connected = true
		c.become(Connected)
	}
	c.wind()
	if c.relying > 0 {
		conn.Heartbeat() // the last one may be long ago
	}
}

// become publishes s and wakes the goroutines that wait for a change. mu is held.
func (c *connection) become(s ConnectionState) {
	c.state = s
	c.telemetry.StateNoted(s.word())
	if conn := c.current.Load(); s == Suspended && conn != nil {
		c.suspended = conn.Silence()
	}
	c.publish(s)
	close(c.changed)
	c.changed = make(chan struct{})
}

// lose ends the session. mu is held.
func (c *connection) lose() {
	if c.session != nil {
		c.session.cancel(ErrSessionLost)
	}
	if c.state != Lost {
		c.become(Lost)
	}
}

// replace opens a Conn for the next session and abandons the current one. mu is held, but not while the watchers of the
// old session get its end, because there may be many: they get that before anything of the next session.
func (c *connection) replace() {
	old := c.current.Load()
	c.replacing = true
	c.wg.Add(1)
	defer c.wg.Done()
	c.mu.Unlock()
	old.Expire()
	c.mu.Lock()
	c.replacing = false
	if c.closed {
		return
	}
	c.since = time.Now()
	if err := c.open(); err != nil {
		c.unhandled("cannot open a connection", err)
	}
	c.wg.Go(old.Abandon)
	c.wind()
}

// follow applies the connect string of the ensemble provider if it has changed.
func (c *connection) follow(target connectString, keepSession bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.current.Load()
	switch {
	case c.closed || c.replacing: // the next Conn calls follow again
	case conn == nil:
		c.target = target
		if err := c.open(); err != nil {
			c.unhandled("cannot open a connection", err)
		}
	case !target.equal(c.target):
		c.telemetry.ConnectStringChanged(conn.SessionID())
		// One that has no session yet has none to lose.
		keep := target.chroot == c.target.chroot && (keepSession || conn.SessionID() == 0)
		c.target = target
		if keep {
			conn.UpdateServers(target.servers)
			return
		}
		c.lose()
		c.replace()
	}
}

func (c *connection) chroot() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target.chroot
}

// remaining returns after which time the session has to be taken for lost; false if there is none to lose. The
// silence of the server counts the time in which the machine was suspended. mu is held.
func (c *connection) remaining() (time.Duration, bool) {
	if c.session == nil || c.session.ctx.Err() != nil {
		return c.cfg.sessionTimeout - time.Since(c.since), c.state != Lost
	}
	conn := c.current.Load()
	limit := conn.SessionTimeout()
	if c.state == Suspended {
		limit = min(limit, c.suspended+limit/100*time.Duration(c.cfg.expirationPercent))
	}
	remaining := limit - conn.Silence()
	if c.relying > 0 {
		remaining = min(remaining, conn.SessionTimeout()-conn.QuorumSilence())
	}
	return remaining, true
}

// rely has the session prove itself with quorum heartbeats until stop.
func (c *connection) rely() (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.relying++; c.relying == 1 {
		if conn := c.current.Load(); conn != nil {
			conn.Rely()
		}
	}
	stopped := false
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !stopped {
			stopped = true
			c.relying--
		}
	}
}

// checks is how often in a session timeout the clock is looked at: a timer stands still while the machine is suspended.
const checks = 20

// untilCheck returns when to look at the clock that shows what remains.
func (c *connection) untilCheck(remaining time.Duration) time.Duration {
	if c.session == nil || c.session.ctx.Err() != nil {
		return max(remaining, 0)
	}
	return max(min(remaining, c.current.Load().SessionTimeout()/checks), 0)
}

// wind sets the clock. mu is held.
func (c *connection) wind() {
	if c.clock == nil || c.closed {
		return
	}
	if d, running := c.remaining(); running {
		c.clock.Reset(c.untilCheck(d))
		return
	}
	c.clock.Stop()
}

// tick ends the session when its time is over, also with a connection: without an answer for so long, the server may
// have ended it.
func (c *connection) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replacing {
		return
	}
	if d, running := c.remaining(); !running || d > 0 {
		if c.relying > 0 && c.state.IsConnected() {
			c.current.Load().Heartbeat()
		}
		c.wind()
		return
	}
	hadSession := c.session != nil && c.session.ctx.Err() == nil
	if c.state != Suspended && c.state != Lost { // the first try still lasts, or the machine stood still
		c.become(Suspended)
	}
	c.lose()
	if hadSession {
		c.replace()
	}
}

// reset ends the session and begins another.
func (c *connection) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replacing {
		return
	}
	c.lose()
	if c.current.Load() != nil {
		c.replace()
	}
}

// isConnected reports whether there is a connection, and returns what is closed at the next change.
func (c *connection) isConnected() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.IsConnected() && !c.closed, c.changed
}

func (c *connection) currentState() ConnectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// refusal returns why there will be no connection, or nil.
func (c *connection) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// lastError returns the last error of a connect, or nil.
func (c *connection) lastError() error {
	if conn := c.current.Load(); conn != nil {
		return conn.LastError()
	}
	if err := c.follower.lastError(); err != nil {
		return fmt.Errorf("the ensemble provider has no servers: %w", err)
	}
	return nil
}

// currentSession returns the newest session. One that did not survive a suspension of the machine has ended then, even
// before the clock was looked at.
func (c *connection) currentSession() *Session {
	c.mu.Lock()
	s := c.session
	over := false
	if s != nil && s.ctx.Err() == nil && !c.replacing {
		d, running := c.remaining()
		over = running && d <= 0
	}
	c.mu.Unlock()
	if over {
		c.tick()
	}
	return s
}

// sessionLeft returns the time after which the session is taken for lost, 0 without a session.
func (c *connection) sessionLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.session.ctx.Err() != nil || c.replacing {
		return 0
	}
	left, _ := c.remaining()
	return max(left, 0)
}

// close ends the session on the server, and reports whether all sessions have ended. It waits little longer than the
// time for closing, whatever functions of the program it calls.
func (c *connection) close() bool {
	c.mu.Lock()
	c.closed = true
	conn := c.current.Load()
	if c.clock != nil {
		c.clock.Stop()
	}
	if c.session != nil { // before the end on the server, which releases the locks of the session
		c.session.cancel(ErrClosed)
	}
	c.mu.Unlock()
	c.follower.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn != nil {
			conn.Close()
		}
		c.wg.Wait()
	}()
	ended := dispatch.Within(c.cfg.maxCloseWait+libraryGoodbye, done)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
	return ended
}

// libraryGoodbye is the time for which go-zookeeper waits for the answer to its close, and a little more.
const libraryGoodbye = 1500 * time.Millisecond

// wait waits for dialers and the ensemble provider, and reports whether they have returned by end.
func (c *connection) wait(end time.Time) bool {
	return c.hosts.Wait(time.Until(end)) && dispatch.Within(time.Until(end), c.follower.ended)
}
