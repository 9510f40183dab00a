package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/codes"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestStatusDescribesWhatTheErrorTypeDoesNot(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{zk.ErrNoAuth, ""},
		{jute.ErrConnectionLoss, ""},
		{fmt.Errorf("%w: dial refused", jute.ErrConnectionLoss), jute.ErrConnectionLoss.Error() + ": dial refused"},
		{fmt.Errorf("something else"), "something else"},
		{jute.Code(-1000).Err(), jute.Code(-1000).Err().Error()},
	} {
		o := observe.New(t)
		run(t.Context(), newTelemetry(o), telemetry.Operation{Name: "sync"}, false, tt.err)
		if got := o.Spans()[0].Status(); got.Code != codes.Error || got.Description != tt.want {
			t.Errorf("%v: status %v, want %q", tt.err, got, tt.want)
		}
	}
}
