package builders_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// A caller whose context ends while its request is in flight learns which server has not answered. If the request is a
// write, it may have taken effect.
func TestContextEndsInFlight(t *testing.T) {
	type call func(ctx context.Context, c *framework.Client) error
	tests := map[string]struct {
		op    string
		write bool
		call  call
	}{
		"getData": {"getData", false, func(ctx context.Context, c *framework.Client) error {
			_, err := c.GetData().ForPath(ctx, "/n")
			return err
		}},
		"getChildren": {"getChildren2", false, func(ctx context.Context, c *framework.Client) error {
			_, err := c.GetChildren().ForPath(ctx, "/n")
			return err
		}},
		"create": {"create2", true, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create().ForPath(ctx, "/new", nil)
			return err
		}},
		"submitted create": {"create2", true, func(ctx context.Context, c *framework.Client) error {
			f := c.Create().Submit(ctx, "/new", nil)
			_, err := f.Wait(ctx)
			if _, again := f.Wait(t.Context()); again == nil || again.Error() != err.Error() {
				t.Errorf("the second Wait returns %v", again)
			}
			return err
		}},
		"setData": {"setData", true, func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetData().ForPath(ctx, "/n", nil)
			return err
		}},
		"delete": {"delete", true, func(ctx context.Context, c *framework.Client) error {
			return c.Delete().ForPath(ctx, "/n")
		}},
		"setACL": {"setACL", true, func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetACL().WithACL(builders.OpenACL...).ForPath(ctx, "/n")
			return err
		}},
		"transaction": {"multi", true, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Transaction().ForOperations(ctx, c.TransactionOp().Delete().ForPath("/n"))
			return err
		}},
		"fenced setData": {"multi", true, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Fenced(t.Context(), errors.New("lost"), "/n").SetData().ForPath(ctx, "/n", nil)
			return err
		}},
	}
	for name, tt := range tests {
		for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
			t.Run(name+" "+action.String(), func(t *testing.T) {
				t.Parallel()
				client, tr, proxy := setUpProxied(t)
				tr.make("/n", "")
				held := proxy.Faults().Add(curatortest.Rule{Ops: []string{tt.op}, Action: action, Count: 1})
				defer held.Release()
				ctx, cancel := context.WithCancel(testenv.Context(t))
				go func() { _ = held.Wait(ctx); cancel() }()
				err := tt.call(ctx, client)
				if !errors.Is(err, context.Canceled) || errors.Is(err, framework.ErrUncertain) != tt.write {
					t.Errorf("got %v, want an uncertain outcome: %v", err, tt.write)
				}
				if errors.Is(err, framework.ErrConnectionLoss) {
					t.Errorf("%v matches the loss of a connection", err)
				}
				if err != nil && !strings.Contains(err.Error(), proxy.Addr()+" has not answered for ") {
					t.Errorf("%v does not say which server has not answered", err)
				}
			})
		}
	}
}

// The outcome of a write that never left this process is certain.
func TestContextEndsBeforeTheWriteIsSent(t *testing.T) {
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		client, _, proxy := setUpProxied(t)
		connect := disconnect(t, client, proxy)
		defer connect()
		ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Millisecond)
		defer cancel()
		_, err := client.Create().ForPath(ctx, "/new", nil)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, framework.ErrUncertain) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("behind many requests", func(t *testing.T) {
		t.Parallel()
		client, tr, proxy := setUpProxied(t)
		tr.make("/n", "")
		held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.HoldRequest})
		ignore := func(context.Context, callbacks.Event) {}
		for range 100 {
			testclient.Must(t, client.SetData().InBackground(ignore).ForPath(testenv.Context(t), "/n", nil))
		}
		testclient.Must(t, held.Wait(testenv.Context(t)))
		ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Millisecond)
		defer cancel()
		_, err := client.SetData().ForPath(ctx, "/n", nil)
		held.Release()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, framework.ErrUncertain) {
			t.Errorf("got %v", err)
		}
	})
}

// A write whose answer was lost has an uncertain outcome also while it waits for its next attempt.
func TestContextEndsAfterALostAnswer(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(1, time.Hour)))
	tr.make("/n", "")
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
	ctx, cancel := context.WithCancel(testenv.Context(t))
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s == framework.Reconnected {
			cancel()
		}
	})
	_, err := client.SetData().ForPath(ctx, "/n", nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, framework.ErrUncertain) {
		t.Errorf("got %v", err)
	}
}
