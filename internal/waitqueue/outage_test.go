package waitqueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
)

func TestIsOutageOfErrorsWithoutAnswer(t *testing.T) {
	for err, want := range map[error]bool{
		framework.ErrConnectionLoss: true, framework.ErrOperationTimeout: true, framework.ErrNotSent: true,
		framework.ErrUncertain: true, zk.ErrSessionExpired: true, zk.ErrSessionMoved: true,
		framework.ErrThrottledOp: false,
		nil:                      false, zk.ErrNoNode: false, zk.ErrNoAuth: false, zk.ErrNodeExists: false,
		framework.ErrClosed: false,
		context.Canceled:    false, context.DeadlineExceeded: false,
		waitqueue.ErrNotAcquired: false, waitqueue.ErrNodeLost: false,
	} {
		if got := waitqueue.IsOutage(err); got != want {
			t.Errorf("%v is one: %t", err, got)
		}
		if err != nil && waitqueue.IsOutage(fmt.Errorf("get /a: %w", err)) != want {
			t.Errorf("%v is one: %t, if it is wrapped", err, !want)
		}
	}
}

func TestIsPassingOfThrottledRequest(t *testing.T) {
	for err, want := range map[error]bool{
		framework.ErrConnectionLoss: true, framework.ErrThrottledOp: true, zk.ErrSessionExpired: true,
		errors.Join(zk.ErrNoNode, framework.ErrThrottledOp): true, // of several reads
		nil: false, zk.ErrNoNode: false, zk.ErrNoAuth: false, framework.ErrClosed: false, context.Canceled: false,
	} {
		if got := waitqueue.IsPassing(err); got != want {
			t.Errorf("%v passes: %t", err, got)
		}
	}
}
