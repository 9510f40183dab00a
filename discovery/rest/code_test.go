package rest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
)

// refusing is a serializer that fails with an error.
type refusing struct {
	discovery.InstanceSerializer[string]
	err error
}

func (r *refusing) Encode(discovery.ServiceInstance[string]) ([]byte, error) {
	return nil, fmt.Errorf("on purpose: %w", r.err)
}

func TestEachErrorHasItsCode(t *testing.T) {
	serializer := &refusing{}
	inScene(t, func(s *scene[string]) {
		for _, test := range []struct {
			code int
			errs []error
		}{
			{400, []error{zk.ErrInvalidPath, framework.ErrBadArguments}},
			{404, []error{discovery.ErrNoInstance}},
			{409, []error{discovery.ErrForeign, discovery.ErrInUse, zk.ErrNotEmpty}},
			{413, []error{framework.ErrRequestTooLarge}},
			{500, []error{errors.New("another one"), zk.ErrNoAuth}},
			{503, []error{ // it can be sent again
				framework.ErrUncertain, framework.ErrClosed, framework.ErrNotStarted, framework.ErrTooManyPending,
				framework.ErrNotReadOnly, framework.ErrSessionLost, framework.ErrSessionFailed, framework.ErrConnectionLoss,
				discovery.ErrClosed, discovery.ErrNotStarted, context.Canceled,
				context.DeadlineExceeded, zk.ErrConnectionClosed, zk.ErrSessionExpired,
			}},
		} {
			for _, serializer.err = range test.errs {
				s.wantRefused("PUT", "/v1/service/orders/a", minimal, test.code, "")
			}
		}
	}, discovery.WithSerializer[string](serializer))
}
