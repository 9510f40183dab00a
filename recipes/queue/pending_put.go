package queue

import (
	"context"

	"github.com/gocurator/curator/internal/telemetry"
)

// PendingPut is an accepted put, as returned by PutAsync. All methods are safe for concurrent use.
type PendingPut struct {
	prefix string
	data   []byte
	// ended is called once, with the outcome. It returns the function that calls the listeners, nil if there are none.
	ended   func(path string, err error) (notify func())
	cause   context.Context //nolint:containedctx // of its span, nil without tracing
	sending *telemetry.Message
	back    bool // it was in the queue before

	// Of the goroutine that submits.
	uncertain bool // it may be in the queue: the answer to an earlier create was lost
	losses    int  // how many connections in a row were lost with it alone under way

	done chan struct{}
	path string
	err  error
}

func newPendingPut(prefix string, data []byte) *PendingPut {
	return &PendingPut{
		prefix: prefix, data: data, done: make(chan struct{}),
		ended: func(string, error) func() { return nil },
	}
}

// Done returns a channel that is closed when the outcome is available.
func (x *PendingPut) Done() <-chan struct{} { return x.done }

// Wait waits for the outcome and returns the path of the node. The error is the error of ctx, or the reason why the
// items are not in the queue: an [*ItemError], with [ErrUncertain] if they may be. FlushPuts reports a failure whether
// or not Wait has returned it.
func (x *PendingPut) Wait(ctx context.Context) (path string, err error) {
	if !isClosed(x.done) && !awaitDone(ctx, x.done) {
		return "", ctx.Err()
	}
	return x.path, x.err
}

// end publishes the outcome.
func (x *PendingPut) end(path string, err error) {
	x.path, x.err = path, err
	close(x.done)
}

// awaitPuts waits for the outcome of all puts.
func awaitPuts(ctx context.Context, puts []*PendingPut) error {
	for _, x := range puts {
		if !isClosed(x.done) && !awaitDone(ctx, x.done) {
			return ctx.Err()
		}
	}
	return nil
}
