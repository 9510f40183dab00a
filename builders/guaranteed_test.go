package builders_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// noRetries is a policy that takes every failure for final.
type noRetries struct{}

func (noRetries) NewBackOff() backoff.BackOff { return &backoff.StopBackOff{} }
func (noRetries) Retryable(error) bool        { return false }

func TestGuaranteedDeleteGoesOnWhateverThePolicySays(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy := curatortest.NewProxyT(t, testenv.Addr(t))
	client, err := framework.New(proxy.Addr()+chroot, framework.WithRetryPolicy(noRetries{}),
		framework.WithSessionTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := client.Create().ForPath(ctx, "/n", nil); err != nil {
		t.Fatal(err)
	}
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Count: 3, Action: curatortest.CutBefore})
	if err := client.Delete().Guaranteed().ForPath(ctx, "/n"); !errors.Is(err, framework.ErrConnectionLoss) {
		t.Errorf("got %v", err)
	}
	raw := testenv.Raw(t)
	testenv.Eventually(t, func() bool {
		exists, _, err := raw.Exists(chroot + "/n")
		return err == nil && !exists
	}, "the node is deleted")
}

// A server with too much to do refuses what it has not begun.
func TestGuaranteedDeleteGoesOnWhenItIsThrottled(t *testing.T) {
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			tr.make("/n", "")
			refused := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"delete"}, Count: 2, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
			})
			if err := refused.Err(); err != nil {
				t.Fatal(err)
			}
			wantErr(t, w.delete(t, client.Delete().Guaranteed(), "/n").Err, jute.ErrThrottledOp, "delete", "/n")
			testenv.Eventually(t, func() bool { return !tr.exists("/n") }, "it is deleted")
		})
	}
}
