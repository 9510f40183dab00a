package barrier

import (
	"context"
	"fmt"
	"sync"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// DistributedDoubleBarrier has a number of members begin together and end together: Enter returns when all have come,
// Leave when all have gone. The members may do that again and again. One value is one member: each of them, in this
// process or another, has its own. In Java: DistributedDoubleBarrier.
type DistributedDoubleBarrier struct {
	client  Client
	path    string
	members int
	newName func() string
	err     error // the path or the number of members is invalid
	obs     telemetry.Barrier

	mu    sync.Mutex
	place place
	// Of the goroutine that enters or leaves.
	name    string        // of our node: another one in each round, so that what is late in one cannot change the next
	round   round         // that we are in
	cleanup chan struct{} // closed when our node is deleted in the background; nil if it need not be
}

// place is where a member is.
type place int

const (
	outside place = iota
	entering
	inside
	leaving
)

// readyNode is the node beside those of the members that lets them in.
const readyNode = "ready"

// NewDistributedDoubleBarrier returns a member of the barrier of a path with that number of members, on which all of
// them have to agree. It does no I/O; a path or a number that cannot be is the error of every method.
func NewDistributedDoubleBarrier(client Client, path string, members int, opts ...Option) *DistributedDoubleBarrier {
	d := &DistributedDoubleBarrier{
		client:  client,
		path:    path,
		members: members,
		newName: zkpath.NewProtectionID,
		err:     zkpath.Validate(path, false),
		obs:     telemetry.Of(client).NewBarrier("double_barrier", settingsOf(opts).name, path),
	}
	if d.err == nil && members < 1 {
		d.err = fmt.Errorf("barrier: %d members", members)
	}
	return d
}

func (d *DistributedDoubleBarrier) own() string   { return zkpath.Join(d.path, d.name) }
func (d *DistributedDoubleBarrier) ready() string { return zkpath.Join(d.path, readyNode) }

// inSession reports whether the client has that session.
func (d *DistributedDoubleBarrier) inSession(id int64) bool {
	s := d.client.Session()
	return s != nil && s.ID() == id && s.Context().Err() == nil
}

// Enter waits until as many members as there are to be have come. With an error we have not entered, and our node is
// gone or being deleted in the background; the others may have counted it already, and have entered.
//
// ctx bounds the waiting. While the connection is lost our place is kept; when the session is lost we come anew with
// the next one. Other errors: [ErrEntered], and those of the first look and of the create, when the retry policy of the
// client has given up. In Java: enter.
func (d *DistributedDoubleBarrier) Enter(ctx context.Context) error {
	if d.err != nil {
		return errtext.Wrap(d.err, "barrier", "enter")
	}
	if !d.move(outside, entering) {
		return errtext.Wrap(ErrEntered, "barrier", "enter %s", d.path)
	}
	ctx, span := d.obs.Wait(telemetry.Of(d.client).Handling(ctx), "enter", d.members)
	var err error
	d.round, err = d.enter(ctx)
	span.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		d.move(entering, outside)
		return errtext.Wrap(err, "barrier", "enter %s", d.path)
	}
	d.move(entering, inside)
	return nil
}

// Leave waits until all members who are in have called it, or their sessions have ended. With an error not all have, as
// far as we know; we have left all the same: our node is gone or being deleted in the background.
//
// ctx bounds the waiting, never the deleting. An outage does not end the wait. If our session was lost since Enter, the
// others have not waited for us; Leave waits for those who are still in. [ErrNotEntered] says that there is nothing to
// leave. In Java: leave.
func (d *DistributedDoubleBarrier) Leave(ctx context.Context) error {
	if d.err != nil {
		return errtext.Wrap(d.err, "barrier", "leave")
	}
	if !d.move(inside, leaving) {
		return errtext.Wrap(ErrNotEntered, "barrier", "leave %s", d.path)
	}
	defer d.move(leaving, outside)
	ctx, span := d.obs.Wait(telemetry.Of(d.client).Handling(ctx), "leave", d.members)
	err := d.leave(ctx)
	span.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		return errtext.Wrap(err, "barrier", "leave %s without the others", d.path)
	}
	return nil
}

// move goes from one place to another, if that is where we are.
func (d *DistributedDoubleBarrier) move(from, to place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.place != from {
		return false
	}
	d.place = to
	return true
}
