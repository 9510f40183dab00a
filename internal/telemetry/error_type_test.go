package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
)

func TestErrorTypeIsOfAClosedSet(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{zk.ErrNoNode, "NONODE"},
		{fmt.Errorf("get /a: %w", zk.ErrNoNode), "NONODE"},
		{zk.ErrNodeExists, "NODEEXISTS"},
		{zk.ErrBadVersion, "BADVERSION"},
		{zk.ErrNotEmpty, "NOTEMPTY"},
		{zk.ErrNoAuth, "NOAUTH"},
		{jute.ErrConnectionLoss, "CONNECTIONLOSS"},
		{zk.ErrConnectionClosed, "CONNECTIONLOSS"},
		{zk.ErrSessionExpired, "SESSIONEXPIRED"},
		{jute.ErrOperationTimeout, "OPERATIONTIMEOUT"},
		{errtext.ErrClosed, "CLOSED"},
		{fmt.Errorf("put: %w", errtext.Special(errtext.ErrClosed, "queue: closed")), "CLOSED"},
		{context.Canceled, "canceled"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, jute.ErrConnectionLoss), "deadline_exceeded"},
		{jute.Code(-9999).Err(), "_OTHER"},
		{errors.New("/a/path of a user"), "_OTHER"},
	}
	for _, tt := range tests {
		if got := telemetry.ErrorType(tt.err); got != tt.want {
			t.Errorf("%v is %s, want %s", tt.err, got, tt.want)
		}
	}
}
