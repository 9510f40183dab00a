package builders_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// noRetries is a policy that takes every failure for final.
type noRetries struct{}

func (noRetries) NewBackOff() backoff.BackOff { return &backoff.StopBackOff{} }
func (noRetries) Retryable(error) bool        { return false }

func TestGuaranteedDeleteGoesOnWhateverThePolicySays(t *testing.T) {
	t.Parallel()
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

// The answer to a delete is lost. Before the next try another client creates the node again, which stays.
func TestDeleteRetriedSparesNewerNode(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(b builders.Delete) builders.Delete{
		"plain":      func(b builders.Delete) builders.Delete { return b },
		"quietly":    builders.Delete.Quietly,
		"version":    func(b builders.Delete) builders.Delete { return b.WithVersion(0) },
		"guaranteed": builders.Delete.Guaranteed,
		"children":   builders.Delete.DeletingChildrenIfNeeded,
	} {
		for _, w := range ways {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t)
				succeed(t, w.create(t, client.Create(), "/n", []byte("ours")))
				proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.CutAfter})
				next := proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"multi", "delete"}, Skip: 1, Count: 1, Action: curatortest.HoldRequest,
				})
				done := make(chan callbacks.Event, 1)
				go func() { done <- w.delete(t, build(client.Delete()), "/n") }()
				if err := next.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				tr.make("/n", "theirs")
				next.Release()
				wantErr(t, (<-done).Err, builders.ErrUncertain, "delete", "/n")
				if data, _ := tr.read("/n"); data != "theirs" {
					t.Errorf("the node has %q", data)
				}
			})
		}
	}
}

// A guaranteed delete goes on in the background, where it finds a node that another client has created since.
func TestGuaranteedDeleteInBackgroundSparesNewerNode(t *testing.T) {
	t.Parallel()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(noRetries{}))
			reported := uncertainties(client)
			succeed(t, foreground.create(t, client.Create(), "/n", []byte("ours")))
			cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: action})
			looks := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"multi", "delete"}, Skip: 1, Count: 1, Action: curatortest.HoldRequest,
			})
			ev := foreground.delete(t, client.Delete().Guaranteed(), "/n")
			wantErr(t, ev.Err, framework.ErrConnectionLoss, "delete", "/n")
			if err := looks.Wait(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			if action == curatortest.CutBefore {
				tr.remove("/n")
			}
			tr.make("/n", "theirs")
			looks.Release()
			receive(t, reported)
			if data, _ := tr.read("/n"); data != "theirs" || cut.Hits() != 1 {
				t.Errorf("the node has %q", data)
			}
		})
	}
}

// uncertainties returns the unhandled errors of a client that are [builders.ErrUncertain].
func uncertainties(client *framework.Client) <-chan error {
	reported := make(chan error, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, u framework.UnhandledError) {
		if errors.Is(u.Err, builders.ErrUncertain) {
			reported <- u.Err
		}
	})
	return reported
}

// The delete is sent for the first time after an outage, during which another client has replaced the node.
func TestGuaranteedDeleteOfAnOutageSparesNewerNode(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	reported := uncertainties(client)
	succeed(t, foreground.create(t, client.Create(), "/n", []byte("ours")))
	connect := disconnect(t, client, proxy)
	ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Millisecond)
	defer cancel()
	if err := client.Delete().Guaranteed().ForPath(ctx, "/n"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	tr.remove("/n")
	tr.make("/n", "theirs")
	connect()
	receive(t, reported)
	if data, _ := tr.read("/n"); data != "theirs" {
		t.Errorf("the node has %q", data)
	}
}

// The retry has learned of newer transactions when it fails too. What the first try knew still counts.
func TestGuaranteedDeleteAfterRetrySparesNewerNode(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.OneTime(time.Millisecond)))
	reported := uncertainties(client)
	succeed(t, foreground.create(t, client.Create(), "/n", []byte("ours")))
	faults := proxy.Faults()
	faults.Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.CutAfter})
	looks := faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	lost := faults.Add(curatortest.Rule{Ops: []string{"exists"}, Count: 1, Action: curatortest.CutBefore})
	done := make(chan callbacks.Event, 1)
	go func() { done <- foreground.delete(t, client.Delete().Guaranteed(), "/n") }()
	if err := looks.Wait(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	tr.make("/n", "theirs")
	looks.Release()
	wantErr(t, receive(t, done).Err, framework.ErrConnectionLoss, "delete", "/n")
	receive(t, reported)
	if data, _ := tr.read("/n"); data != "theirs" || lost.Hits() != 1 {
		t.Errorf("the node has %q", data)
	}
}

// A server with too much to do refuses what it has not begun. The policy retries that, and a guaranteed delete goes on
// when the policy has given up.
func TestDeleteThrottledIsRetried(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, guaranteed := range []bool{false, true} {
				client, tr, proxy := setUpProxied(t)
				tr.make("/n", "")
				delete, times := client.Delete(), 2
				if guaranteed {
					delete, times = delete.Guaranteed(), 20 // more than the policy tries
				}
				refused := proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"delete"}, Count: times, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
				})
				err := w.delete(t, delete, "/n").Err
				if guaranteed {
					wantErr(t, err, framework.ErrThrottledOp, "delete", "/n")
				} else if err != nil {
					t.Error(err)
				}
				testenv.Eventually(t, func() bool { return !tr.exists("/n") }, "it is deleted")
				if refused.Hits() != times {
					t.Errorf("%d tries are throttled", refused.Hits())
				}
			}
		})
	}
}
