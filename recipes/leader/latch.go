package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// LeaderLatch takes part in an election from Start to Close. The latches of a path wait in line. The first one leads
// until it is closed or loses its leadership. All methods are safe for concurrent use. In Java: LeaderLatch.
type LeaderLatch struct { //nolint:revive // the name is Java's
	client   *framework.Client
	queue    waitqueue.Queue
	id       string
	mode     CloseMode
	err      error // returned by Start if not nil: the path is invalid
	name     string
	election report.Election

	listeners     listeners.Set[LatchEvent]
	notifications waitqueue.Serial // calls of the listeners
	listening     context.Context  // the context of the listeners; ends when Close stops waiting for them
	stopListening context.CancelCauseFunc
	ctx           context.Context // ends with Close
	cancel        context.CancelCauseFunc
	done          chan struct{} // closed when run has returned

	mu           sync.Mutex
	state        State
	inErrorState bool               // the connection is in an error state
	outages      int                // number of times that the connection came to an error state
	leadership   *Leadership        // nil if the latch does not lead
	failure      error              // of the last try to take part; nil if it has succeeded
	stopCheck    context.CancelFunc // ends a check of the line; nil before the first
	changed      chan struct{}      // closed when leadership, inErrorState or state changes
}

// LatchEvent is a beginning or an end of leadership.
type LatchEvent struct {
	// IsLeader is true when leadership begins and false when it ends.
	IsLeader bool
	// Leadership is the one that begins. It is nil at an end.
	Leadership *Leadership
}

// CloseMode decides whether Close notifies the listeners of a leader. In Java: LeaderLatch.CloseMode.
type CloseMode int

// The modes of closing.
const (
	// Silent does not notify the listeners of the end of leadership by Close.
	Silent CloseMode = iota
	// NotifyLeader notifies the listeners of the end of leadership by Close.
	NotifyLeader
)

const latchName = "latch-"

// NewLeaderLatch returns a latch for the election of a path. It does no I/O. Start returns an error if the path is
// invalid.
func NewLeaderLatch(client *framework.Client, path string, opts ...LatchOption) *LeaderLatch {
	l := &LeaderLatch{
		client:  client,
		err:     zkpath.Validate(path, false),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	for _, o := range opts {
		o.applyLatch(l)
	}
	l.election = newElection(client, "leader_latch", l.name, l.id, path)
	l.queue = waitqueue.Queue{Client: client, Path: path, Prefix: latchName, Data: []byte(l.id)}
	root := context.Background() //nolint:forbidigo // the derived contexts end with Close
	l.ctx, l.cancel = context.WithCancelCause(root)
	l.listening, l.stopListening = context.WithCancelCause(root)
	return l
}

// Start starts to take part. It does not wait for a connection. If the latch cannot take part, for example without
// permission, the client's unhandled-error listeners get the error and the latch tries again, after pauses that grow
// from 1 s to 5 s. They also get the error of a leader that cannot read its own node, unless it lacks the permission;
// the latch keeps its leadership. Start fails with [ErrStarted] the second time, with [ErrClosed] after Close, and with
// [framework.ErrClosed] when the client is closed.
func (l *LeaderLatch) Start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return errtext.Wrap(l.err, "leader", "start")
	case l.state == Closed:
		return ErrClosed
	case l.state == Started:
		return ErrStarted
	}
	if err := waitqueue.CheckOpen(l.client); err != nil {
		return errtext.Wrap(err, "leader", "start")
	}
	l.state = Started
	library := waitqueue.ForLibrary(l.client)
	remove := library.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		l.setErrorState(l.client.ConnectionStateErrorPolicy().IsErrorState(s))
	})
	go func() {
		defer close(l.done)
		defer remove()
		defer l.client.QuorumHeartbeats()()
		l.run()
	}()
	return nil
}

// maxCloseWait bounds the time for which Close waits for listeners.
const maxCloseWait = time.Second

// Close stops taking part. It deletes the node in the background and retries until that succeeds; then the next
// participant leads. It waits for the calls of the listeners, but no longer than a second, and then ends their context:
// a listener that calls Close waits for itself for that second, and can start a goroutine that closes instead. A second
// Close does nothing more. In Java: close.
func (l *LeaderLatch) Close() error {
	l.mu.Lock()
	before := l.state
	l.state = Closed
	if before != Closed {
		l.broadcast()
	}
	if before == Latent {
		close(l.done) // run was never started
	}
	l.mu.Unlock()
	l.cancel(ErrClosed)
	<-l.done
	waiting, stopWaiting := context.WithTimeout(l.listening, maxCloseWait) // a listener may call Close
	defer stopWaiting()
	l.notifications.Wait(waiting, 0)
	l.stopListening(ErrClosed)
	return nil
}

// run takes part again and again, as the latch loses its place in line with its session. After a failure it pauses.
func (l *LeaderLatch) run() {
	failures := 0 // in a row
	for l.ctx.Err() == nil {
		ctx, span := l.election.Elect(l.ctx)
		_, outages, _ := l.connection()
		c, err := l.queue.Acquire(ctx, waitqueue.Forever)
		span.End(report.Outcome(err, report.Elected), err)
		if err == nil {
			l.setFailure(nil)
			err = l.lead(ctx, c, outages)
		}
		l.setFailure(err)
		if err == nil {
			failures = 0
			continue
		}
		if errors.Is(err, framework.ErrClosed) {
			return // the client never connects again
		}
		if l.ctx.Err() == nil {
			l.client.ReportUnhandled(context.WithoutCancel(ctx), l.description(), err)
		}
		failures++
		if pauseAfterFailure(l.ctx, l.client, waitqueue.ReadPause(failures)) != nil {
			return
		}
	}
}

func (l *LeaderLatch) setFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// lead leads while our node is first and its session is alive. While the connection is in an error state the latch does
// not lead; it leads again if its node is still first. ctx is the context of the election. outages is the number of
// outages before the election: after another one the list of Acquire is too old to begin a term. lead fails if the line
// cannot be listed.
func (l *LeaderLatch) lead(ctx context.Context, c *waitqueue.Contender, outages int) error {
	events := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(events)
	defer func() {
		l.endTerm(ErrLeadershipLost)
		l.leave(context.WithoutCancel(ctx), c, watcher)
	}()
	l.beginTerm(ctx, c, outages) // without another list: leadership begins at once
	verified := false            // our node is first and, if it can be read, watched
	failures := 0                // number of failures to watch the node in a row
	reported := false            // the error of these failures was reported
	unwatched := time.NewTimer(0)
	unwatched.Stop()
	for {
		inErrorState, outages, changed := l.connection()
		if inErrorState {
			l.endTerm(ErrLeadershipLost)
			verified = false
		} else if !verified || l.isIdle() { // an outage may have come and gone before this loop saw it
			checkCtx, stop := l.whileConnected(ctx)
			first, unread, err := l.isFirst(checkCtx, c, watcher)
			connected := checkCtx.Err() == nil
			stop()
			switch {
			case err == nil && !first:
				return nil
			case err == nil:
				verified = true
				l.beginTerm(ctx, c, outages)
				if unread != nil && !reported && !errors.Is(unread, zk.ErrNoAuth) {
					l.client.ReportUnhandled(context.WithoutCancel(ctx), l.description(), unread)
				}
				reported = unread != nil
			case connected && !waitqueue.IsPassing(err):
				return err
			}
			if failures++; err == nil && unread == nil {
				failures = 0
			} else {
				unwatched.Reset(waitqueue.ReadPause(failures))
			}
		}
		select {
		case <-changed: // the state of the connection, for example
		case <-events:
			verified = false
		case <-unwatched.C:
			verified = false
		case <-c.Session.Context().Done():
			return nil
		case <-l.ctx.Done():
			return nil
		}
	}
}

// beginTerm begins a leadership if there is none. outages is the number of outages at the time of the list that allows
// it.
func (l *LeaderLatch) beginTerm(ctx context.Context, c *waitqueue.Contender, outages int) {
	if l.Leadership() == nil {
		l.setLeadership(newLeadership(ctx, l.client, c), outages, nil)
	}
}

// endTerm ends the leadership if there is one.
func (l *LeaderLatch) endTerm(cause error) { l.setLeadership(nil, 0, cause) }

// leave deletes our node in the background and retries until that succeeds. The deletion ends the watch. If the node
// stays, leave removes the watch after the delete, so that the next leader does not wait for the removal.
func (l *LeaderLatch) leave(ctx context.Context, c *waitqueue.Contender, watcher *callbacks.Watcher) {
	unwatch := func(context.Context, callbacks.Event) { waitqueue.Unwatch(ctx, l.client, watcher, c.Path) }
	_ = waitqueue.ForLibrary(l.client).Delete().Guaranteed().Quietly().InBackground(unwatch).
		ForPath(hook.OutOfFence(ctx), c.Path)
}

// whileConnected returns a context that ends when the connection comes to an error state. A check that waits for its
// reply then must not delay the listeners.
func (l *LeaderLatch) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopCheck = stop
	if l.inErrorState {
		stop()
	}
	return ctx, stop
}

// isFirst watches our node, then lists the line again. unread is the error if the node cannot be read now: then it is
// not watched.
func (l *LeaderLatch) isFirst(
	ctx context.Context, c *waitqueue.Contender, watcher *callbacks.Watcher,
) (first bool, unread, err error) {
	ctx = builders.OutOfFlight(ctx) // a retry of the program holds up no leadership
	_, unread = l.client.GetData().Undecompressed().UsingWatcher(watcher).ForPath(ctx, c.Path)
	switch {
	case errors.Is(unread, zk.ErrNoNode):
		return false, nil, nil
	case unread != nil && (ctx.Err() != nil || waitqueue.IsOutage(unread)):
		return false, nil, unread
	}
	children, err := l.client.GetChildren().ForPath(ctx, l.queue.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil, nil
	}
	v := waitqueue.First(children, zkpath.Node(c.Path), latchName)
	return v.Found && v.Granted && c.Session.Context().Err() == nil, unread, err
}

// connection returns whether the connection is in an error state, and the number of outages. changed is closed when
// either may have changed.
func (l *LeaderLatch) connection() (inErrorState bool, outages int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inErrorState, l.outages, l.changed
}

// isIdle reports whether the latch takes part and does not lead.
func (l *LeaderLatch) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == Started && (l.leadership == nil || !l.leadership.isHeld())
}

// setErrorState records whether the connection is in an error state. An error state ends the leadership at once; lead
// decides what follows.
func (l *LeaderLatch) setErrorState(inErrorState bool) {
	l.mu.Lock()
	l.inErrorState = inErrorState
	if inErrorState {
		l.outages++
	}
	leadership := l.leadership
	if inErrorState && leadership != nil {
		leadership.end(ErrLeadershipLost)
	}
	if inErrorState && l.stopCheck != nil {
		l.stopCheck()
	}
	l.broadcast()
	l.mu.Unlock()
	leadership.endSpan()
}

// setLeadership sets the leadership and notifies the listeners of a change. Only lead calls it, so beginnings and ends
// alternate. No leadership begins while the connection is in an error state, or if the number of outages has changed.
func (l *LeaderLatch) setLeadership(next *Leadership, outages int, cause error) {
	ended, begun := l.changeLeadership(next, outages, cause)
	ended.endSpan()
	if begun != nil {
		begun.setSpan(l.election.Term(begun.ctx))
	}
}

// changeLeadership is setLeadership without telemetry. It returns the leadership that has ended and the one that has
// begun; either may be nil.
func (l *LeaderLatch) changeLeadership(next *Leadership, outages int, cause error) (ended, begun *Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next != nil && (l.inErrorState || l.outages != outages || l.state == Closed) {
		next.end(ErrLeadershipLost)
		next = nil
	}
	ended = l.leadership
	if ended == nil && next == nil {
		return nil, nil
	}
	if ended != nil {
		if l.state == Closed {
			cause = ErrClosed
		} else if cause == nil {
			cause = ErrLeadershipLost // a new term begins, and lead has not noticed the end of this one
		}
		ended.end(cause)
		l.notify(nil)
	}
	l.leadership = next
	l.broadcast()
	if next != nil {
		l.notify(next)
	}
	return ended, next
}

// notify queues the calls of the listeners; nil means the end of a leadership. mu is held.
func (l *LeaderLatch) notify(begun *Leadership) {
	if l.state == Closed && l.mode == Silent {
		return
	}
	l.notifications.Do(func() {
		l.listeners.Notify(l.listening, LatchEvent{IsLeader: begun != nil, Leadership: begun},
			waitqueue.Guard(l.listening, l.client, l.description()))
	})
}

// description names the latch in reports to the client.
func (l *LeaderLatch) description() string { return "leader latch " + l.queue.Path }

// broadcast wakes the goroutines that wait for a change. mu is held.
func (l *LeaderLatch) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// AddListener adds a listener to later beginnings and ends of leadership, which alternate. remove removes it. The calls
// of all listeners run one after the other, so a listener that blocks delays the others.
//
// A listener does not get a leadership that has ended before its call, neither the beginning nor the end. So it gets no
// beginning after Close. If it has got a beginning it also gets the end, unless Close is [Silent]: before Close
// returns, or later if a listener blocks for a second or calls Close.
//
// The context of a listener ends when the latch is closed, after Close has waited for the listeners. The context of a
// Leadership ends with the leadership. The client's unhandled-error listeners get a panic. In Java: addListener.
func (l *LeaderLatch) AddListener(fn callbacks.Listener[LatchEvent]) (remove func()) {
	leftOut := false // this listener did not get the last beginning
	return l.listeners.Add(func(ctx context.Context, ev LatchEvent) {
		switch {
		case ev.IsLeader:
			leftOut = !ev.Leadership.isHeld()
		case leftOut:
			leftOut = false
			return
		}
		if !leftOut {
			fn(ctx, ev)
		}
	})
}

// Await waits until the latch leads and returns its leadership. It fails with [ErrClosed] when the latch is closed,
// with [framework.ErrClosed] when the client is closed, and when ctx ends with its error and the reason for a missing
// connection, or why the latch cannot take part. In Java: await.
func (l *LeaderLatch) Await(ctx context.Context) (*Leadership, error) {
	for {
		l.mu.Lock()
		leadership, state, changed := l.leadership, l.state, l.changed
		l.mu.Unlock()
		switch {
		case state == Closed:
			return nil, ErrClosed
		case leadership != nil && leadership.isHeld():
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
			return nil, l.endOf(ctx)
		}
	}
}

// endOf returns the error of a wait whose ctx has ended, with the reason why the latch cannot take part.
func (l *LeaderLatch) endOf(ctx context.Context) error {
	l.mu.Lock()
	failure := l.failure
	l.mu.Unlock()
	end := hook.EndOf(ctx, l.client)
	if !l.client.IsConnected() { // end has the reason for that
		return end
	}
	return errtext.Join(end, failure)
}

// Leadership returns the current leadership, or nil if the latch does not lead.
func (l *LeaderLatch) Leadership() *Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leadership == nil || !l.leadership.isHeld() || l.state != Started {
		return nil
	}
	return l.leadership
}

// HasLeadership reports whether the latch leads.
func (l *LeaderLatch) HasLeadership() bool { return l.Leadership() != nil }

// State returns the state of the latch. In Java: getState.
func (l *LeaderLatch) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// ID returns the id of the latch. In Java: getId.
func (l *LeaderLatch) ID() string { return l.id }

// Participants returns all participants, the leader first. In Java: getParticipants.
func (l *LeaderLatch) Participants(ctx context.Context) ([]Participant, error) {
	return participants(ctx, l.client, l.queue.Path, latchName)
}

// Leader returns the leader, or the zero Participant if there is none. In Java: getLeader.
func (l *LeaderLatch) Leader(ctx context.Context) (Participant, error) {
	return leaderOf(ctx, l.client, l.queue.Path, latchName)
}
