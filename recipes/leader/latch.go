package leader

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// LeaderLatch takes part in an election from Start to Close. The latches of a path stand in line, and the first leads
// until it is closed or lost. All methods are safe for concurrent use. In Java: LeaderLatch.
type LeaderLatch struct { //nolint:revive // the name is Java's
	client   Client
	queue    lineup.Queue
	id       string
	mode     CloseMode
	bad      error // why the path cannot be
	name     string
	election telemetry.Election

	listeners listeners.Set[LatchEvent]
	told      lineup.Serial   // what the listeners are told
	ctx       context.Context // ends with Close
	cancel    context.CancelCauseFunc
	done      chan struct{} // closed when nothing runs any more

	mu         sync.Mutex
	state      State
	broken     bool               // the connection is in an error state
	outages    int                // how often it came to one
	leadership *Leadership        // nil if it does not lead
	stopLook   context.CancelFunc // of a look at the line; nil before the first
	changed    chan struct{}      // closed when leadership, broken or state is another
}

// LatchEvent tells a listener whether the latch leads.
type LatchEvent struct {
	// IsLeader is false when leadership has ended.
	IsLeader bool
	// Leadership is the one that begins, nil when one has ended.
	Leadership *Leadership
}

// State is how far the life of a latch is. In Java: LeaderLatch.State.
type State int

// The states of a latch.
const (
	Latent State = iota
	Started
	Closed
)

// CloseMode says what Close tells the listeners of a latch that leads. In Java: LeaderLatch.CloseMode.
type CloseMode int

// The modes of closing.
const (
	// Silent tells them nothing.
	Silent CloseMode = iota
	// NotifyLeader tells them that leadership has ended.
	NotifyLeader
)

const latchName = "latch-"

// LatchOption changes a default of a latch.
type LatchOption interface{ applyLatch(*LeaderLatch) }

// SelectorOption changes a default of a selector.
type SelectorOption interface{ applySelector(*LeaderSelector) }

// Option is for latches and selectors alike.
type Option interface {
	LatchOption
	SelectorOption
}

type idOption string

func (o idOption) applyLatch(l *LeaderLatch)       { l.id = string(o) }
func (o idOption) applySelector(s *LeaderSelector) { s.id = string(o) }

// WithID sets the id by which others know the participant; the default is none.
func WithID(id string) Option { return idOption(id) }

type nameOption string

func (o nameOption) applyLatch(l *LeaderLatch)       { l.name = string(o) }
func (o nameOption) applySelector(s *LeaderSelector) { s.name = string(o) }

// WithName sets what spans and metrics call the election; the default is nothing. Metrics have a series for each name,
// so there should be few.
func WithName(name string) Option { return nameOption(name) }

type latchOption func(*LeaderLatch)

func (o latchOption) applyLatch(l *LeaderLatch) { o(l) }

// WithCloseMode sets what Close tells the listeners; the default is [Silent].
func WithCloseMode(m CloseMode) LatchOption { return latchOption(func(l *LeaderLatch) { l.mode = m }) }

// NewLeaderLatch returns a latch for the election of a path. It does no I/O; a path that cannot be is the error of
// Start.
func NewLeaderLatch(client Client, path string, opts ...LatchOption) *LeaderLatch {
	l := &LeaderLatch{
		client:  client,
		bad:     zkpath.Validate(path, false),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	for _, o := range opts {
		o.applyLatch(l)
	}
	l.election = telemetry.Of(client).NewElection("leader_latch", l.name, path)
	l.queue = lineup.Queue{Client: client, Path: path, Prefix: latchName, Data: []byte(l.id)}
	l.ctx, l.cancel = context.WithCancelCause(context.Background()) //nolint:forbidigo // it ends with Close
	return l
}

// Start begins to take part, and does not wait for a connection. What keeps it from taking part, as a permission that
// is missing, is told to the client's UnhandledErrorListeners, and it is tried again every second. It fails with
// [ErrStarted] the second time and with [ErrClosed] after Close.
func (l *LeaderLatch) Start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.bad != nil:
		return errtext.Wrap(l.bad, "leader", "start")
	case l.state == Closed:
		return ErrClosed
	case l.state == Started:
		return ErrStarted
	}
	l.state = Started
	remove := l.client.ConnectionStateListeners().AddListener(func(_ context.Context, s framework.ConnectionState) {
		l.setBroken(l.client.ConnectionStateErrorPolicy().IsErrorState(s))
	})
	go func() {
		defer close(l.done)
		defer remove()
		defer l.client.QuorumHeartbeats()()
		l.run()
	}()
	return nil
}

// Close ends taking part: the node is deleted, in the background until it is done, and the next one leads. It does not
// wait for listeners, which may call it. A second Close does nothing. In Java: close.
func (l *LeaderLatch) Close() error { return l.CloseWithMode(l.mode) }

// CloseWithMode is Close with another mode than the latch was made with. In Java: close(CloseMode).
func (l *LeaderLatch) CloseWithMode(mode CloseMode) error {
	l.mu.Lock()
	before := l.state
	l.state = Closed
	if before != Closed {
		l.mode = mode
		l.announce()
	}
	if before == Latent {
		close(l.done) // nothing has run
	}
	l.mu.Unlock()
	l.cancel(ErrClosed)
	<-l.done
	return nil
}

// run takes part again and again: a place in line is lost with its session.
func (l *LeaderLatch) run() {
	for l.ctx.Err() == nil {
		ctx, asked := l.election.Elect(l.ctx)
		_, outages, _ := l.connection()
		c, err := l.queue.Acquire(ctx, lineup.Forever)
		asked.End(telemetry.Outcome(err, telemetry.Elected), err)
		if err == nil {
			l.lead(ctx, c, outages)
			continue
		}
		if errors.Is(err, framework.ErrClosed) {
			return // there will be no connection any more
		}
		if l.ctx.Err() == nil {
			l.client.ReportUnhandled(context.WithoutCancel(ctx), l.what(), err)
		}
		pause(l.ctx, l.client)
	}
}

// lead leads for as long as our node is the first of a session that lives. While the connection is in an error state it
// does not lead, and leads again if it finds its node as it was. ctx is that of the election, outages how many there
// had been before it: after another one, the line that Acquire has seen is too old to lead by.
func (l *LeaderLatch) lead(ctx context.Context, c *lineup.Contender, outages int) {
	gone := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(gone)
	defer func() {
		l.end(ErrLeadershipLost)
		l.leave(context.WithoutCancel(ctx), c, watcher)
	}()
	l.begin(ctx, c, outages) // the next leader does not wait for us to look again
	sure := false            // it is the first, and its node is watched
	for {
		broken, outages, changed := l.connection()
		if broken {
			l.end(ErrLeadershipLost)
			sure = false
		} else if !sure || l.isIdle() { // the connection may have been lost and found before we were told of either
			looking, stop := l.whileConnected(ctx)
			first, err := l.isFirst(looking, c, watcher)
			connected := looking.Err() == nil
			stop()
			switch {
			case err != nil && !lineup.IsOutage(err) && connected, err == nil && !first:
				return
			case err == nil:
				sure = true
				l.begin(ctx, c, outages)
			}
		}
		select {
		case <-changed: // a connection that is lost or found again, too
		case <-gone:
			sure = false
		case <-c.Session.Context().Done():
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// begin begins a leadership if there is none; outages is how many there had been when it was found that it may.
func (l *LeaderLatch) begin(ctx context.Context, c *lineup.Contender, outages int) {
	if l.Leadership() == nil {
		l.setLeadership(newLeadership(ctx, l.client, c), outages, nil)
	}
}

// end ends the leadership if there is one.
func (l *LeaderLatch) end(cause error) { l.setLeadership(nil, 0, cause) }

// leave deletes our node, in the background until it is done. The watch ends with the node; if that stays, it is
// removed. That comes behind the deletion, for which the next leader waits.
func (l *LeaderLatch) leave(ctx context.Context, c *lineup.Contender, watcher *callbacks.Watcher) {
	unwatch := func(context.Context, callbacks.Event) {
		_ = l.client.Watches().Remove(watcher).Guaranteed().Quietly().InBackground(lineup.Ignore).
			ForPath(telemetry.Of(l.client).Aside(ctx), c.Path)
	}
	_ = l.client.Delete().Guaranteed().Quietly().InBackground(unwatch).ForPath(hook.OutOfFence(ctx), c.Path)
}

// whileConnected returns a context that ends when the connection comes to an error state: what waits for an answer then
// is not to hold up what the listeners are told.
func (l *LeaderLatch) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopLook = stop
	if l.broken {
		stop()
	}
	return ctx, stop
}

// isFirst watches our node and looks at the line once more.
func (l *LeaderLatch) isFirst(ctx context.Context, c *lineup.Contender, watcher *callbacks.Watcher) (bool, error) {
	_, err := l.client.GetData().Undecompressed().UsingWatcher(watcher).ForPath(ctx, c.Path)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) { // what may not be read is not watched
		return false, err
	}
	children, err := l.client.GetChildren().ForPath(ctx, l.queue.Path)
	if err != nil {
		return false, err
	}
	v := lineup.First(children, zkpath.Node(c.Path), latchName)
	return v.Found && v.Granted && c.Session.Context().Err() == nil, nil
}

// connection returns whether the connection is in an error state, and how often it came to one; the channel is closed
// when that may have changed.
func (l *LeaderLatch) connection() (broken bool, outages int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken, l.outages, l.changed
}

// isIdle reports whether the latch takes part and does not lead.
func (l *LeaderLatch) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == Started && (l.leadership == nil || !l.leadership.holds())
}

// setBroken ends leadership at once; who leads on is decided by lead.
func (l *LeaderLatch) setBroken(broken bool) {
	l.mu.Lock()
	l.broken = broken
	if broken {
		l.outages++
	}
	leadership := l.leadership
	if broken && leadership != nil {
		leadership.end(ErrLeadershipLost)
	}
	if broken && l.stopLook != nil {
		l.stopLook()
	}
	l.announce()
	l.mu.Unlock()
	leadership.tell()
}

// setLeadership tells the listeners if it changes anything. It is called by lead alone, so they hear of a beginning and
// an end in turn. Nothing begins while the connection is in an error state, nor if there were more outages.
func (l *LeaderLatch) setLeadership(now *Leadership, outages int, cause error) {
	ended, begun := l.changeLeadership(now, outages, cause)
	ended.tell()
	if begun != nil {
		begun.observe(l.election.Term(begun.ctx))
	}
}

// changeLeadership is setLeadership that leaves telemetry out. It returns what has ended and what has begun.
func (l *LeaderLatch) changeLeadership(now *Leadership, outages int, cause error) (before, begun *Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now != nil && (l.broken || l.outages != outages || l.state == Closed) {
		now.end(ErrLeadershipLost)
		now = nil
	}
	before = l.leadership
	if before == nil && now == nil {
		return nil, nil
	}
	if before != nil {
		if l.state == Closed {
			cause = ErrClosed
		} else if cause == nil {
			cause = ErrLeadershipLost // it had ended before anybody looked
		}
		before.end(cause)
		l.tell(nil)
	}
	l.leadership = now
	l.announce()
	if now != nil {
		l.tell(now)
	}
	return before, now
}

// tell tells the listeners. mu is held.
func (l *LeaderLatch) tell(now *Leadership) {
	if l.state == Closed && l.mode == Silent {
		return
	}
	l.told.Do(func() {
		ctx := context.WithoutCancel(l.ctx)
		l.listeners.Notify(ctx, LatchEvent{IsLeader: now != nil, Leadership: now},
			lineup.Guard(ctx, l.client, l.what()))
	})
}

// what is what the client calls the latch.
func (l *LeaderLatch) what() string { return "leader latch " + l.queue.Path }

// announce wakes who waits for a change. mu is held.
func (l *LeaderLatch) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// AddListener has fn told when leadership begins and when it ends, in turn, from now on; remove ends that. Listeners
// run one after the other: until one returns the others are not told, and leadership may have ended meanwhile. A panic
// is told to the client's unhandled-error listeners. In Java: addListener.
func (l *LeaderLatch) AddListener(fn func(ctx context.Context, ev LatchEvent)) (remove func()) {
	return l.listeners.AddListener(fn)
}

// Await waits until the latch leads, and returns its leadership. It fails with [ErrClosed] when the latch is closed,
// with [framework.ErrClosed] when the client is, and with the error of ctx when that ends. In Java: await.
func (l *LeaderLatch) Await(ctx context.Context) (*Leadership, error) {
	for {
		l.mu.Lock()
		leadership, state, changed := l.leadership, l.state, l.changed
		l.mu.Unlock()
		switch {
		case state == Closed:
			return nil, ErrClosed
		case leadership != nil && leadership.holds():
			return leadership, nil
		}
		select {
		case <-changed:
		case <-l.done:
			if l.State() == Closed {
				return nil, ErrClosed
			}
			return nil, framework.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Leadership returns the leadership of now, nil if the latch does not lead.
func (l *LeaderLatch) Leadership() *Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leadership == nil || !l.leadership.holds() || l.state != Started {
		return nil
	}
	return l.leadership
}

// HasLeadership reports whether the latch leads.
func (l *LeaderLatch) HasLeadership() bool { return l.Leadership() != nil }

// State returns how far the life of the latch is. In Java: getState.
func (l *LeaderLatch) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// ID returns the id of the latch. In Java: getId.
func (l *LeaderLatch) ID() string { return l.id }

// Participants returns who takes part, the leader first. In Java: getParticipants.
func (l *LeaderLatch) Participants(ctx context.Context) ([]Participant, error) {
	return participants(ctx, l.client, l.queue.Path, latchName)
}

// Leader returns who leads, the zero Participant if nobody does. In Java: getLeader.
func (l *LeaderLatch) Leader(ctx context.Context) (Participant, error) {
	return leaderOf(ctx, l.client, l.queue.Path, latchName)
}
