package barrier

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/zkpath"
)

// DistributedDoubleBarrier makes a number of members begin together and end together: Enter returns when all members
// have entered, Leave when all have left. The members may repeat that. One value is one member: each member, in this
// process or another, has its own value. In Java: DistributedDoubleBarrier.
type DistributedDoubleBarrier struct {
	client  *framework.Client
	path    string
	members int
	newName func() string
	err     error // set if the path or the number of members is invalid
	obs     report.Barrier

	mu    sync.Mutex
	state memberState
	// Only the goroutine in Enter or Leave uses these fields.
	name       string        // the name of our node: new in each round, so that a late request cannot change a later node
	round      round         // the current round
	cleanup    chan struct{} // closed when the background delete of our node has ended; nil if there is none
	cleanupErr atomic.Pointer[error]
}

// memberState is the state of a member.
type memberState int

const (
	outside memberState = iota
	entering
	inside
	leaving
)

// readyNode is the node that opens the barrier. It is a sibling of the members' nodes.
const readyNode = "ready"

// NewDistributedDoubleBarrier returns a member of the barrier of a path. All members have to use the same number of
// members. It does no I/O. Every method returns an error if the path or the number is invalid.
func NewDistributedDoubleBarrier(
	client *framework.Client, path string, members int, opts ...Option,
) *DistributedDoubleBarrier {
	d := &DistributedDoubleBarrier{
		client:  client,
		path:    path,
		members: members,
		newName: zkpath.NewProtectionID,
		err:     zkpath.Validate(path, false),
		obs:     report.NewBarrier(hook.Telemetry(client), "double_barrier", settingsOf(opts).name, path),
	}
	if d.err == nil && members < 1 {
		d.err = fmt.Errorf("barrier: %d members", members)
	}
	return d
}

func (d *DistributedDoubleBarrier) own() string   { return zkpath.Join(d.path, d.name) }
func (d *DistributedDoubleBarrier) ready() string { return zkpath.Join(d.path, readyNode) }

// inSession reports whether id is the client's session and the session is alive.
func (d *DistributedDoubleBarrier) inSession(id int64) bool {
	s := d.client.Session()
	return s != nil && s.ID() == id && s.Context().Err() == nil
}

// Enter waits until all members have entered. After an error this member has not entered: its node is deleted, or is
// being deleted in the background. The others may have counted the node and entered.
//
// ctx bounds the wait. The wait survives a lost connection. After the end of the session Enter creates the node again
// in the next session, and joins a round that has begun. It fails with [ErrSessionEnded] if a round may have begun and
// ended meanwhile: the others may have counted the member, and in the next round it would stay one round behind them.
// It fails with [ErrEntered] if the member has already entered. It also fails when its first read or create fails after
// all retries of the client. In Java: enter.
func (d *DistributedDoubleBarrier) Enter(ctx context.Context) error {
	if d.err != nil {
		return errtext.Wrap(d.err, "barrier", "enter")
	}
	if !d.move(outside, entering) {
		return errtext.Wrap(ErrEntered, "barrier", "enter %s", d.path)
	}
	ctx, span := d.obs.Wait(hook.Telemetry(d.client).ExpectingErrors(ctx), "enter", d.members)
	var err error
	d.round, err = d.enter(ctx)
	span.End(report.Outcome(err, report.Passed), err)
	if err != nil {
		d.move(entering, outside)
		return errtext.Wrap(err, "barrier", "enter %s", d.path)
	}
	d.move(entering, inside)
	return nil
}

// Leave waits until all members that have entered call Leave or lose their sessions. After an error this member has
// left anyway: its node is deleted, or is being deleted in the background. Other members may not have left.
//
// ctx bounds the wait, not the delete. The wait survives a lost connection. If the session was lost since Enter, the
// others have not waited for this member; Leave waits for those that are still in. It fails with [ErrNotEntered] if the
// member has not entered. In Java: leave.
func (d *DistributedDoubleBarrier) Leave(ctx context.Context) error {
	if d.err != nil {
		return errtext.Wrap(d.err, "barrier", "leave")
	}
	if !d.move(inside, leaving) {
		return errtext.Wrap(ErrNotEntered, "barrier", "leave %s", d.path)
	}
	defer d.move(leaving, outside)
	ctx, span := d.obs.Wait(hook.Telemetry(d.client).ExpectingErrors(ctx), "leave", d.members)
	err := d.leave(ctx)
	span.End(report.Outcome(err, report.Passed), err)
	if err != nil {
		return errtext.Wrap(err, "barrier", "leave %s without the others", d.path)
	}
	return nil
}

// move changes the state of the member. It returns false if the state is not from.
func (d *DistributedDoubleBarrier) move(from, to memberState) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != from {
		return false
	}
	d.state = to
	return true
}
