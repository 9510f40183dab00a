package leader

import (
	"context"
	"errors"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
)

// Do takes part in the election of a path, calls fn when it leads, and gives up leadership when fn has returned or
// panicked. It takes part like a [LeaderSelector], with the same nodes, for one turn: do not mix it with latches on one
// path. The context of fn derives from ctx and also ends when leadership is lost, with the cause [ErrLeadershipLost];
// [LeadershipOf] returns its leadership, whose Client writes only while it lasts. fn has to return then.
//
// ctx bounds the wait for leadership and the work. Do returns the error of the wait, which is that of ctx when ctx ends
// first, or that of fn, joined with [ErrLeadershipLost] if leadership was lost while fn ran: fn may have done a part,
// and another participant may lead by now. If the client is closed, the error matches [framework.ErrClosed], and
// without fn it matches [framework.ErrBadArguments]. The node is deleted in the background, as long as the client is
// not closed. Do works in a callback of the client, and leaves no goroutine. In Java: LeaderSelector with
// takeLeadership.
func Do(
	ctx context.Context, client *framework.Client, path string, fn func(ctx context.Context) error, opts ...Option,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	selectorOpts := make([]SelectorOption, len(opts))
	for i, o := range opts {
		selectorOpts[i] = o
	}
	s := NewLeaderSelector(client, path, fn, selectorOpts...)
	s.cancel(ErrClosed) // of the context that it would live in
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(ErrClosed)
	if err := s.check(); err != nil {
		return errtext.Wrap(err, "leader", "do")
	}
	s.begin()
	defer s.removeListener()
	defer client.QuorumHeartbeats()()
	elected := false
	_, _, err := s.takeTurn(func(l *Leadership) error {
		elected = true
		err := fn(l.workContext())
		if !l.mayWrite() && !errors.Is(err, ErrLeadershipLost) {
			err = errors.Join(err, ErrLeadershipLost)
		}
		if closed := waitqueue.CheckOpen(client); closed != nil && !l.mayWrite() && !errors.Is(err, closed) {
			err = errors.Join(err, closed)
		}
		return err
	})
	if err == nil && !elected {
		return ctx.Err() // it has ended between the turn and the call of fn
	}
	return err
}
