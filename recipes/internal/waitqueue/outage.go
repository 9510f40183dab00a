package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// OutagePause is the pause before another try on an unstable connection.
const OutagePause = 10 * time.Millisecond

// IsOutage reports whether err only means that there was no connection or no session.
func IsOutage(err error) bool {
	return errors.Is(err, framework.ErrConnectionLoss) || errors.Is(err, framework.ErrOperationTimeout) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// AwaitConnection waits, after an outage, until another try makes sense. It fails with the cause of the end of ctx, and
// when the client is closed.
func AwaitConnection(ctx context.Context, client Client) error {
	if err := Pause(ctx, OutagePause); err != nil {
		return err
	}
	return client.BlockUntilConnected(ctx)
}

// RetryOutage calls fn again with a new connection for as long as its error is an outage. It returns the error of fn,
// or that of AwaitConnection.
func RetryOutage(ctx context.Context, client Client, fn func() error) error {
	for {
		err := fn()
		if !IsOutage(err) {
			return err
		}
		if err := AwaitConnection(ctx, client); err != nil {
			return err
		}
	}
}
