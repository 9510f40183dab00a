package framework

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// connection keeps a session with the ensemble. It opens one wire.Conn after the other, one for each session. It
// derives the connection state from the states of the Conn and from its own clock, and publishes it in order.
type connection struct {
	cfg       *config
	executor  *exec.Executor
	telemetry *telemetry.Telemetry
	publish   func(s ConnectionState, attrs ...slog.Attr) // called in order; must not block
	warn      func(message string, attrs ...slog.Attr)    // logs, in order with publish; must not block
	unhandled func(message string, err error)             // must not block

	current  atomic.Pointer[wire.Conn]
	hosts    wire.Hosts // servers of all sessions
	follower *ensembleFollower
	wg       sync.WaitGroup // waits for connections that are abandoned or replaced

	mu          sync.Mutex
	closed      bool
	replacing   bool            // the current Conn has ended, and the next one is not open yet
	refused     bool            // the servers refuse the login, which was reported
	auth        []jute.Auth     // the credentials of the program
	target      connectString   // servers of the current Conn
	state       ConnectionState // the state that was published last
	connected   bool            // the client has been connected to a server with a quorum
	server      string          // server of the newest established connection
	quorumUsers int             // number of unstopped calls of requireQuorum
	session     *Session        // the newest session, which may have ended; nil before the first
	isLonely    bool            // it began on a read-only server, and the others do not have it
	earlier     []int64         // the ids of the last sessions before it
	since       time.Time       // start of the wait for the next session
	suspended   time.Duration   // the silence of the server when Suspended was published last
	clock       *time.Timer     // calls tick
	changed     chan struct{}   // closed and replaced at each change
}

func newConnection(cfg *config, publish func(ConnectionState, ...slog.Attr)) *connection {
	c := &connection{cfg: cfg, publish: publish, target: cfg.target, auth: cfg.auth, changed: make(chan struct{})}
	c.follower = newEnsembleFollower(cfg.ensemble, c.follow)
	c.hosts.Jitter = cfg.jitter
	return c
}

// start opens the first Conn to the servers of target. target is empty if a [ServerNotifier] has no servers yet: then
// follow opens the Conn when the notifier has some.
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
	var seen int64
	if before := c.current.Load(); before != nil {
		seen = before.Known()
	}
	var unsent atomic.Pointer[error] // why the client's certificate was not sent on the newest connection
	opened := make(chan struct{})    // the Conn may report its state before Open has returned
	conn, err := wire.Open(wire.Config{
		Servers:        c.target.servers,
		Hosts:          &c.hosts,
		Chroot:         c.target.chroot,
		SessionTimeout: c.cfg.sessionTimeout,
		TickTime:       c.cfg.tickTime,
		ConnectTimeout: c.cfg.connectionTimeout,
		CloseWait:      c.cfg.maxCloseWait,
		ReadOnly:       c.cfg.readOnly,
		Auth:           slices.Clone(c.auth),
		Login:          c.cfg.sasl,
		Probe:          true,
		Dial:           c.cfg.dial,
		Secure:         c.cfg.secure(&unsent),
		Resolve:        c.cfg.resolve(),
		Order:          c.cfg.orderServers(),
		Refresh:        func(ctx context.Context) { c.follower.followNow(ctx) },
		OnFailure:      func(err error) { c.warn("cannot connect", slog.Any("error", err)) },
		OnLoss: func(err error) {
			<-opened
			c.warn("connection lost", sessionAttr(conn.SessionID()), slog.Any("error", err))
		},
		Wall:     c.cfg.wall,
		Logger:   c.cfg.logger,
		MaxReply: c.cfg.maxReply,
		Zxid:     seen,
		OnUnsent: c.executor.Unsent,
		OnState: func(s wire.State) {
			<-opened
			if err := unsent.Load(); err != nil && (s == wire.Connected || s == wire.ConnectedReadOnly) {
				c.warn("certificate not sent", slog.String("server", conn.Peer()), sessionAttr(conn.SessionID()),
					slog.Any("error", *err))
			}
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

// on handles a new state of a Conn. It runs on the goroutine that reads its connection.
func (c *connection) on(conn *wire.Conn, s wire.State) {
	if c.take(conn, s) && s != wire.Disconnected && s != wire.Expired { // there is a connection, or a refusal
		c.executor.Connected()
	}
}

// take applies a new state of a Conn. It returns false if the Conn is no longer the current one.
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
			c.suspend()
		}
		c.setClock()
	case wire.Expired:
		c.lose("the server has ended the session")
		c.replace()
	case wire.AuthFailed: // the servers would refuse another Conn too
		c.lose("the servers refuse the credentials")
		c.unhandled("the servers refuse the credentials", zk.ErrAuthFailed)
	case wire.LoginRefused: // as if it could not connect, but whoever waits learns why
		c.refuse(conn.Refusal())
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
	wire.LoginRefused:      zk.StateAuthFailed,
}

// refuse handles that all servers refuse the login, which they may accept later. mu is held.
func (c *connection) refuse(why error) {
	if why == nil {
		return
	}
	first := !c.refused
	c.refused = true
	if c.state != Suspended && c.state != Lost {
		c.suspend()
	} else {
		c.wake()
	}
	c.setClock()
	if first {
		c.unhandled("the servers refuse the login", why)
	}
}

// up handles a new connection. mu is held.
func (c *connection) up(conn *wire.Conn, readOnly bool) {
	c.refused, c.server = false, conn.Peer()
	if id := conn.SessionID(); c.session == nil || c.session.id != id || c.session.ctx.Err() != nil {
		switch {
		case c.session == nil || c.state == Lost:
		case c.isLonely:
			c.lose("only the read-only server had the session")
		default:
			c.lose("the server has granted another session")
		}
		c.noteEarlier()
		c.session, c.isLonely = newSession(id, c.checkClock), readOnly
	}
	s := Connected
	switch {
	case readOnly:
		s = ReadOnly
	case c.connected:
		s = Reconnected
	default:
		c.connected = true
	}
	c.become(s, slog.String("server", c.server), sessionAttr(c.session.id),
		slog.Duration("session_timeout", conn.SessionTimeout()))
	c.setClock()
	if c.quorumUsers > 0 {
		conn.Heartbeat() // there was none without a connection
	}
}

// sessionAttr returns the id of a session as ZooKeeper's own logs write it.
func sessionAttr(id int64) slog.Attr { return slog.String("session", fmt.Sprintf("%#x", uint64(id))) }

// become publishes s, with attrs for the log, and wakes the goroutines that wait for a change. mu is held.
func (c *connection) become(s ConnectionState, attrs ...slog.Attr) {
	c.state = s
	c.telemetry.StateNoted(s.word())
	c.publish(s, attrs...)
	c.wake()
}

// wake wakes the goroutines that wait for a change. mu is held.
func (c *connection) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// suspend publishes Suspended. mu is held.
func (c *connection) suspend() {
	if conn := c.current.Load(); conn != nil {
		c.suspended = conn.Silence()
	}
	if c.session == nil || c.session.ctx.Err() != nil {
		c.become(Suspended)
		return
	}
	c.become(Suspended, slog.String("server", c.server), sessionAttr(c.session.id),
		slog.Duration("silence", c.suspended.Round(time.Millisecond)))
}

// lose ends the session and publishes Lost, with a reason for the log. mu is held.
func (c *connection) lose(reason string) {
	var attrs []slog.Attr
	if c.session != nil && c.session.ctx.Err() == nil {
		attrs = []slog.Attr{slog.String("server", c.server), sessionAttr(c.session.id)}
		c.session.cancel(ErrSessionLost)
	}
	if c.state != Lost {
		c.become(Lost, append(attrs, slog.String("reason", reason))...)
	}
}

// giveUp ends the session and opens a Conn for the next one. Requests are refused first: whoever sees the end of the
// session may begin again at once, and what it begins belongs to the next session. mu is held, but see replace.
func (c *connection) giveUp(reason string) {
	c.current.Load().Refuse()
	c.lose(reason)
	c.replace()
}

// replace opens a Conn for the next session and abandons the current one. mu is held, but released while the watchers
// of the old session get its end, because there may be many. They get it before any event of the next session.
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
	c.setClock()
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
		// A Conn without a session has none to lose.
		keep := target.chroot == c.target.chroot && (keepSession || conn.SessionID() == 0)
		c.target = target
		if keep {
			conn.UpdateServers(target.servers)
			return
		}
		c.giveUp("the connect string has changed")
	}
}

func (c *connection) chroot() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target.chroot
}

// remaining returns the time after which the session counts as lost if no answer comes, and false if there is nothing
// to lose. The silence of the server includes the time in which the machine was suspended. mu is held.
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
	if c.quorumUsers > 0 {
		remaining = min(remaining, conn.SessionTimeout()-conn.QuorumSilence())
	}
	return remaining, true
}

// requireQuorum sends quorum heartbeats until stop is called, and bounds the session by their answers.
func (c *connection) requireQuorum() (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quorumUsers++; c.quorumUsers == 1 {
		if conn := c.current.Load(); conn != nil {
			conn.RequireQuorum()
		}
	}
	stopped := false
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !stopped {
			stopped = true
			c.quorumUsers--
		}
	}
}

// checks is the number of ticks in a session timeout. One timer for the whole timeout would be late after a suspension
// of the machine, because timers stand still meanwhile.
const checks = 20

// untilCheck returns the time until the next tick.
func (c *connection) untilCheck(remaining time.Duration) time.Duration {
	if c.session == nil || c.session.ctx.Err() != nil {
		return max(remaining, 0)
	}
	return max(min(remaining, c.current.Load().SessionTimeout()/checks), 0)
}

// setClock sets the timer of tick. mu is held.
func (c *connection) setClock() {
	if c.clock == nil || c.closed {
		return
	}
	if d, running := c.remaining(); running {
		c.clock.Reset(c.untilCheck(d))
		return
	}
	c.clock.Stop()
}

// tick ends the session if its time is over, even if there is a connection: without an answer for so long the server
// may have ended the session.
func (c *connection) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replacing {
		return
	}
	if d, running := c.remaining(); !running || d > 0 {
		if c.quorumUsers > 0 && c.state.IsConnected() {
			c.current.Load().Heartbeat()
		}
		c.setClock()
		return
	}
	hadSession := c.session != nil && c.session.ctx.Err() == nil
	if c.state != Suspended && c.state != Lost { // the first try has not ended, or the machine was suspended
		c.suspend()
	}
	if !hadSession {
		c.lose(c.timedOut())
		return
	}
	c.giveUp(c.timedOut())
}

// timedOut returns the reason for the end of a session by the clock of the client. mu is held.
func (c *connection) timedOut() string {
	if c.session == nil || c.session.ctx.Err() != nil {
		return "clock of the client: no session within the session timeout"
	}
	conn := c.current.Load()
	silence, unproved := conn.Silence(), conn.QuorumSilence()
	if c.quorumUsers > 0 && unproved > silence {
		return fmt.Sprintf("clock of the client: no proof of a majority for %v", unproved.Round(time.Millisecond))
	}
	return fmt.Sprintf("clock of the client: no answer for %v", silence.Round(time.Millisecond))
}

// addAuth adds credentials to this connection and all later ones.
func (c *connection) addAuth(a jute.Auth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := func(b jute.Auth) bool { return a.Scheme == b.Scheme && bytes.Equal(a.Auth, b.Auth) }
	if slices.ContainsFunc(c.auth, known) {
		return
	}
	c.auth = append(c.auth, a)
	if conn := c.current.Load(); conn != nil {
		conn.AddAuth(a)
	}
}

// reset ends the session and begins another.
func (c *connection) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replacing {
		return
	}
	const reason = "the program has called Reset"
	if c.current.Load() == nil {
		c.lose(reason)
		return
	}
	c.giveUp(reason)
}

// isConnected reports whether there is a connection, and returns a channel that is closed at the next change.
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

// refusal returns the reason why there is no connection if all servers refuse the client, or nil. passing means that
// they may accept it later.
func (c *connection) refusal() (why error, passing bool) { //nolint:revive // it is no failure
	conn := c.current.Load()
	if conn == nil {
		return nil, false
	}
	why = conn.Refusal()
	return why, why != nil && !conn.IsOver()
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

// maxEarlier bounds the sessions that are remembered: a node does not outlive its session by much.
const maxEarlier = 64

// noteEarlier remembers the session before the next one begins. mu is held.
func (c *connection) noteEarlier() {
	if c.session == nil {
		return
	}
	c.earlier = append(c.earlier, c.session.id)
	if len(c.earlier) > maxEarlier {
		c.earlier = slices.Delete(c.earlier, 0, 1)
	}
}

// isOwn reports whether id is that of the session of this client, or of one of its last sessions.
func (c *connection) isOwn(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return id != 0 && (c.session != nil && c.session.id == id || slices.Contains(c.earlier, id))
}

// currentSession returns the newest session. It checks the clock first, so that a session that has run out during a
// suspension of the machine has ended.
func (c *connection) currentSession() *Session {
	c.checkClock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// flight returns a flight on the connection that was published last, and its session; 0 if that is lost.
func (c *connection) flight() (*wire.Flight, int64) {
	c.checkClock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.state.IsConnected() {
		return nil, 0
	}
	flight := c.current.Load().Flight()
	if flight == nil { // which is to be published
		return nil, 0
	}
	return flight, c.session.id
}

// checkClock ends the session if its time is over. The timer of tick may be late after a suspension of the machine.
func (c *connection) checkClock() {
	c.mu.Lock()
	over := false
	if c.session != nil && c.session.ctx.Err() == nil && !c.replacing {
		d, running := c.remaining()
		over = running && d <= 0
	}
	c.mu.Unlock()
	if over {
		c.tick()
	}
}

// sessionLeft returns the time after which the session counts as lost if no answer comes, 0 without a session.
func (c *connection) sessionLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.session.ctx.Err() != nil || c.replacing {
		return 0
	}
	left, _ := c.remaining()
	return max(left, 0)
}

// close ends the session on the server, and reports whether all sessions have ended. It takes little longer than
// maxCloseWait, however long functions of the program block.
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
	ended := dispatch.Within(c.cfg.maxCloseWait+libraryCloseWait, done)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
	return ended
}

// libraryCloseWait is a little more than the time for which go-zookeeper waits for the answer to its close request.
const libraryCloseWait = 1500 * time.Millisecond

// wait waits for dialers and the ensemble provider, and reports whether they have returned by end.
func (c *connection) wait(end time.Time) bool {
	return c.hosts.Wait(time.Until(end)) && dispatch.Within(time.Until(end), c.follower.ended)
}
