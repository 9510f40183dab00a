package queue

import (
	"context"
	"time"
)

// outagePause keeps a connection that stands and falls from being tried without a pause; failurePause is that after an
// answer that time, or an operator, may change.
const (
	outagePause  = 10 * time.Millisecond
	failurePause = time.Second
)

// awaitConnection waits until it is worth trying again after a lost connection.
func awaitConnection(ctx context.Context, client Client) error {
	if err := pause(ctx, outagePause); err != nil {
		return err
	}
	return client.BlockUntilConnected(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
