package framework_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// writesOf are writes of a node /n of version 0, each with its request.
var writesOf = map[string]struct {
	op    string
	write func(ctx context.Context, c *framework.Client) error
	done  func(ctx context.Context, c *framework.Client) (bool, error)
}{
	"create": {"create2", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Create().ForPath(ctx, "/new", nil)
		return err
	}, hasNew},
	"setData": {"setData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetData().ForPath(ctx, "/n", []byte("x"))
		return err
	}, isChanged},
	"setData of a version": {"setData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetData().WithVersion(0).ForPath(ctx, "/n", []byte("x"))
		return err
	}, isChanged},
	"delete": {"delete", func(ctx context.Context, c *framework.Client) error {
		return c.Delete().ForPath(ctx, "/n")
	}, func(ctx context.Context, c *framework.Client) (bool, error) {
		stat, err := c.CheckExists().ForPath(ctx, "/n")
		return stat == nil, err
	}},
	"transaction": {"multi", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Transaction().ForOperations(ctx, c.TransactionOp().Create().ForPath("/new", nil))
		return err
	}, hasNew},
	"fenced": {"multi", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Fenced(context.Background(), errors.New("lost"), "/n").Create().ForPath(ctx, "/new", nil)
		return err
	}, hasNew},
	"in the background": {"create2", func(ctx context.Context, c *framework.Client) error {
		errs := make(chan error, 1)
		err := c.Create().InBackground(func(_ context.Context, ev callbacks.Event) { errs <- ev.Err }).
			ForPath(ctx, "/new", nil)
		if err != nil {
			return err
		}
		return <-errs
	}, hasNew},
}

func hasNew(ctx context.Context, c *framework.Client) (bool, error) {
	stat, err := c.CheckExists().ForPath(ctx, "/new")
	return stat != nil, err
}

func isChanged(ctx context.Context, c *framework.Client) (bool, error) {
	data, err := c.GetData().ForPath(ctx, "/n")
	return string(data) == "x", err
}

// A fault ends a write, with an answer that is lost or before it is sent.
func TestMayHaveTakenEffectIsNeverFalseAfterAWrite(t *testing.T) {
	t.Parallel()
	var (
		twice = framework.WithRetryPolicy(retry.NTimes(3, time.Millisecond))
		later = framework.WithRetryPolicy(retry.NTimes(1, time.Hour))
		once  = framework.WithRetryPolicy(retry.NTimes(0, 0))
	)
	faults := map[string]struct {
		action curatortest.Action
		policy framework.Option
		cancel bool // the context ends when the fault has begun
		close  bool // the client is closed then
	}{
		"cut before":               {curatortest.CutBefore, once, false, false},
		"cut after":                {curatortest.CutAfter, once, false, false},
		"cut after, retried":       {curatortest.CutAfter, twice, false, false},
		"request held, canceled":   {curatortest.HoldRequest, once, true, false},
		"answer held, canceled":    {curatortest.HoldReply, once, true, false},
		"answer held, closed":      {curatortest.HoldReply, once, false, true},
		"answer cut short":         {curatortest.TruncateReply, once, false, false},
		"cut after, then canceled": {curatortest.CutAfter, later, true, false},
	}
	for what, w := range writesOf {
		for how, fault := range faults {
			if what == "in the background" && fault.cancel {
				continue // a context does not end what is accepted
			}
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				chroot := testenv.Chroot(t)
				proxy, connect := testclient.Proxy(t, chroot)
				closeWait := time.Minute
				if fault.cancel || fault.close { // an answer is held
					closeWait = time.Second
				}
				client := connectClient(t, connect, fault.policy, framework.WithMaxCloseWait(closeWait))
				other := connectClient(t, testenv.Addr(t)+chroot)
				ctx, cancel := context.WithCancel(testenv.Context(t))
				defer cancel()
				_, err := other.Create().ForPath(ctx, "/n", nil)
				must(t, err)
				must(t, client.Sync().ForPath(ctx, "/"))
				in := proxy.Faults().Add(curatortest.Rule{Ops: []string{w.op}, Action: fault.action, Count: 1})
				go func() {
					_ = in.Wait(ctx)
					if fault.cancel {
						cancel()
					}
					if fault.close {
						_ = client.Close()
					}
				}()
				err = w.write(ctx, client)
				in.Release()
				reading := testenv.Context(t)
				must(t, other.Sync().ForPath(reading, "/"))
				done, readErr := w.done(reading, other)
				must(t, readErr)
				if err != nil && done && !framework.MayHaveTakenEffect(err) {
					t.Errorf("it has taken effect: %v", err)
				}
			})
		}
	}
}

// Nothing was sent, or the server has refused it: a program may do it again without a look.
func TestMayHaveTakenEffectIsFalseForWhatIsCertain(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, chroot)
	client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(0, 0)))
	ended, end := context.WithCancel(ctx)
	end()
	_, exists := client.Create().ForPath(ctx, "/", nil)
	_, noNode := client.SetData().ForPath(ctx, "/none", nil)
	_, canceled := client.Create().ForPath(ended, "/a", nil)
	_, invalid := client.Create().ForPath(ctx, "a", nil)
	suspended := testclient.AwaitState(ctx, t, client, framework.Suspended)
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	suspended()
	short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	_, waited := client.Create().ForPath(short, "/a", nil)
	patient := startClient(t, connect, framework.WithConnectionTimeout(10*time.Millisecond),
		framework.WithRetryPolicy(retry.NTimes(3, time.Millisecond)))
	_, neverSent := patient.Create().ForPath(ctx, "/a", nil)
	if !errors.Is(neverSent, framework.ErrNotSent) {
		t.Errorf("without a server the error is %v", neverSent)
	}
	restore()
	for _, err := range []error{
		exists, noNode, canceled, invalid, waited, neverSent, zk.ErrBadVersion, framework.ErrNotSent,
		framework.ErrThrottledOp, errors.New("of the program"),
	} {
		if err == nil || framework.MayHaveTakenEffect(err) {
			t.Errorf("nothing has taken effect: %v", err)
		}
	}
	if framework.MayHaveTakenEffect(nil) {
		t.Error("nil is an error")
	}
	for _, err := range []error{
		framework.ErrUncertain, framework.ErrConnectionLoss, zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrSessionMoved,
		framework.ErrOperationTimeout, framework.ErrReplyTooLarge, framework.ErrMarshalling,
		&framework.OpError{Op: "create", Attempts: 2, Err: zk.ErrNodeExists},
		&framework.OpError{Op: "create", Attempts: 1, Err: framework.ErrClosed},
	} {
		if !framework.MayHaveTakenEffect(fmt.Errorf("save: %w", err)) {
			t.Errorf("it may have taken effect: %v", err)
		}
	}
}

// The answer to a write in CallWithRetry is lost, though it has taken effect. The last try was not sent.
func TestMayHaveTakenEffectEarlierCallOfRetryLoopWasSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(2, time.Second))
		ctx := t.Context()
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
		err := f.client.CallWithRetry(ctx, func(ctx context.Context) error {
			_, err := f.client.SetData().ForPath(ctx, "/node", []byte("x"))
			if err != nil {
				f.server.Faults().RefuseConnects()
				f.server.Faults().CutAll()
			}
			return err
		})
		node, _ := f.server.Node("/node")
		if string(node.Data) != "x" || !framework.MayHaveTakenEffect(err) || errors.Is(err, framework.ErrNotSent) {
			t.Errorf("the node has %q, the error is: %v", node.Data, err)
		}
	})
}
