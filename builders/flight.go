package builders

import (
	"context"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/wire"
)

// Pipelined returns a context for a pipeline of operations: each is tried once, all on one connection. After the loss
// of that connection, operations that are submitted later fail with [ErrNotSent], also on another connection. So the
// operations that took effect are a prefix of the submitted ones, and the others can be submitted again in their order,
// in another pipeline.
func Pipelined(ctx context.Context) context.Context { return exec.WithFlight(ctx, new(wire.Flight)) }

// OutOfFlight returns a context whose operations follow the retry policy of their client, outside of any pipeline or
// retry loop of ctx, and outside of the order of the client: they do not wait until an older operation, whose answer
// was lost, has been sent again or has failed. Use it for operations that outlive these, and for those that must not
// wait.
func OutOfFlight(ctx context.Context) context.Context { return exec.WithoutOrder(ctx) }
