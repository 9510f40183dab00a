package framework

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// connection keeps a session with the ensemble: one wire.Conn after the other, each for one session. It decides the
// connection state, by what the wire tells and by its own clock, and publishes it in order.
type connection struct {
	cfg       *config
	executor  *exec.Executor
	telemetry *telemetry.Telemetry
	publish   func(ConnectionState)           // in order; must not block
	unhandled func(message string, err error) // must not block

	current atomic.Pointer[wire.Conn]
	wg      sync.WaitGroup // of those that are being abandoned

	mu        sync.Mutex
	closed    bool
	refused   error           // why there will be no connection
	target    connectString   // what the current Conn was opened with
	state     ConnectionState // as published last
	connected bool            // once in its life, with a quorum
	session   *Session        // the newest
	since     time.Time       // when the wait for a first session began
	suspended time.Time       // when that state was published last
	clock     *time.Timer
	changed   chan struct{} // closed and replaced at each change
}

func newConnection(cfg *config, publish func(ConnectionState)) *connection {
	return &connection{cfg: cfg, publish: publish, changed: make(chan struct{})}
}

// start opens the first Conn.
func (c *connection) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	if err := c.open(); err != nil {
		return err
	}
	c.clock = time.AfterFunc(c.cfg.sessionTimeout, c.tick)
	return nil
}

// open opens a Conn for a new session. mu is held.
func (c *connection) open() error {
	target, err := parseConnectString(c.cfg.ensemble.ConnectionString())
	if err != nil {
		if len(c.target.servers) == 0 {
			return err
		}
		target = c.target // the provider has nothing usable now
	}
	var conn *wire.Conn
	opened := make(chan struct{}) // the Conn may tell of its state before Open has returned
	conn, err = wire.Open(wire.Config{
		Servers:        target.servers,
		Chroot:         target.chroot,
		SessionTimeout: c.cfg.sessionTimeout,
		ConnectTimeout: c.cfg.connectionTimeout,
		CloseWait:      c.cfg.maxCloseWait,
		ReadOnly:       c.cfg.readOnly,
		Auth:           c.cfg.auth,
		Dial:           c.cfg.dialer(),
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
	c.target = target
	c.current.Store(conn)
	close(opened)
	return nil
}

// on takes what a Conn tells. It runs on the goroutine that reads that connection.
func (c *connection) on(conn *wire.Conn, s wire.State) {
	c.mu.Lock()
	if !c.closed && c.current.Load() == conn {
		c.mu.Unlock() // a driver may ask its client
		c.telemetry.SessionEvent(sessionEvents[s], conn.SessionID())
		c.mu.Lock()
	}
	if c.closed || c.current.Load() != conn {
		c.mu.Unlock()
		return
	}
	switch s {
	case wire.Connected, wire.ConnectedReadOnly:
		c.up(conn, s == wire.ConnectedReadOnly)
		c.follow()
		c.mu.Unlock()
		c.executor.Connected()
		return
	case wire.Disconnected:
		if c.state != Suspended && c.state != Lost {
			c.become(Suspended)
		}
		c.follow()
		c.wind()
	case wire.Expired:
		c.lose()
		c.replace()
	case wire.AuthFailed: // no other Conn would fare better
		c.refused = zk.ErrAuthFailed
		c.lose()
		c.unhandled("the servers refuse the credentials", zk.ErrAuthFailed)
	}
	c.mu.Unlock()
}

// sessionEvents are what Java calls what a Conn tells.
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
			c.lose() // a read-only server's session is unknown to the others
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
}

// become publishes s and wakes those who wait for a change. mu is held.
func (c *connection) become(s ConnectionState) {
	c.state = s
	c.telemetry.StateNoted(s.word())
	if s == Suspended {
		c.suspended = time.Now()
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

// replace opens a Conn for the next session and abandons the current one. mu is held.
func (c *connection) replace() {
	old := c.current.Load()
	old.Expire() // its watchers hear of the end before anything of the next session
	c.since = time.Now()
	if err := c.open(); err != nil {
		c.cfg.logger.Error("cannot open a connection", "error", err)
	}
	c.wg.Go(old.Abandon)
	c.wind()
}

// follow applies a connect string that has changed. mu is held.
func (c *connection) follow() {
	target, err := parseConnectString(c.cfg.ensemble.ConnectionString())
	switch {
	case err != nil || target.String() == c.target.String():
	default:
		c.telemetry.ConnectStringChanged(c.current.Load().SessionID())
		c.move(target)
	}
}

// move goes to other servers, with the session if they may know it. mu is held.
func (c *connection) move(target connectString) {
	switch {
	case c.cfg.ensemble.UpdateServerListEnabled() && target.chroot == c.target.chroot:
		c.target = target
		c.current.Load().UpdateServers(target.servers)
	default:
		c.lose()
		c.replace()
	}
}

// serversChanged applies a connect string that the provider was given.
func (c *connection) serversChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.follow()
	}
}

func (c *connection) chroot() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target.chroot
}

// deadline returns when the session has to be taken for lost; zero if there is none to lose. mu is held.
func (c *connection) deadline() time.Time {
	conn := c.current.Load()
	if c.session == nil || c.session.ctx.Err() != nil {
		if c.state == Lost {
			return time.Time{}
		}
		return c.since.Add(c.cfg.sessionTimeout)
	}
	timeout := conn.SessionTimeout()
	end := conn.LastAnswer().Add(timeout)
	if c.state == Suspended {
		early := c.suspended.Add(timeout / 100 * time.Duration(c.cfg.expirationPercent))
		if early.Before(end) {
			end = early
		}
	}
	return end
}

// wind sets the clock to the deadline. mu is held.
func (c *connection) wind() {
	if c.clock == nil || c.closed {
		return
	}
	d := c.deadline()
	if d.IsZero() {
		c.clock.Stop()
		return
	}
	c.clock.Reset(max(time.Until(d), 0))
}

// tick takes the session for lost when the deadline has passed, whatever the connection looks like: without an
// answer for so long, the server may have given it up.
func (c *connection) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if d := c.deadline(); d.IsZero() || time.Now().Before(d) {
		c.wind()
		return
	}
	hadSession := c.session != nil && c.session.ctx.Err() == nil
	if c.state == 0 { // the first try still lasts
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
	if !c.closed {
		c.lose()
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

func (c *connection) currentSession() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// close says goodbye and waits until nothing is left.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	conn := c.current.Load()
	if c.clock != nil {
		c.clock.Stop()
	}
	if c.session != nil { // before the goodbye: with that, others get what it has
		c.session.cancel(ErrClosed)
	}
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}
