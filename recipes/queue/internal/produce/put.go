package produce

import (
	"context"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// Put is an accepted put.
type Put struct {
	prefix string
	data   []byte
	// Ended is called once, with the outcome. It returns the function that calls the listeners, nil if there are none.
	Ended   func(path string, err error) (notify func())
	Cause   context.Context //nolint:containedctx // of its span, nil without tracing
	Sending *report.Message
	back    bool // it was in the queue before

	// Of the goroutine that submits.
	uncertain bool // it may be in the queue: the answer to an earlier create was lost
	losses    int  // how many connections in a row were lost with it alone under way

	done chan struct{}
	path string
	err  error
}

// NewPut returns a put of data, in a node whose name begins with prefix.
func NewPut(prefix string, data []byte) Put {
	return Put{
		prefix: prefix, data: data, done: make(chan struct{}),
		Ended: func(string, error) func() { return nil },
	}
}

// Done returns a channel that is closed when the outcome is available.
func (x *Put) Done() <-chan struct{} { return x.done }

// Wait waits for the outcome and returns the path of the node.
func (x *Put) Wait(ctx context.Context) (path string, err error) {
	if !reply.IsClosed(x.done) && !reply.Await(ctx, x.done) {
		return "", ctx.Err()
	}
	return x.path, x.err
}

// end publishes the outcome.
func (x *Put) end(path string, err error) {
	x.path, x.err = path, err
	close(x.done)
}

// awaitPuts waits for the outcome of all puts.
func awaitPuts(ctx context.Context, puts []*Put) error {
	for _, x := range puts {
		if !reply.IsClosed(x.done) && !reply.Await(ctx, x.done) {
			return ctx.Err()
		}
	}
	return nil
}
