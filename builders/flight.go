package builders

import (
	"context"

	"github.com/gocurator/curator/internal/exec"
)

// InOneFlight returns a context whose operations travel together: each is tried once, all on one connection. When that
// was lost, those that are submitted later fail with [ErrNotSent], also when there is another connection. So what took
// effect is a beginning of what was submitted, and what failed can be submitted again in its order, in another flight.
// Use it to keep many operations under way.
func InOneFlight(ctx context.Context) context.Context { return exec.WithFlight(ctx) }

// OutOfFlight returns a context whose operations are tried again as the retry policy of their client says, whatever
// flight or retry loop ctx is of. It is for what outlives that.
func OutOfFlight(ctx context.Context) context.Context { return exec.WithRetries(ctx) }
