package framework_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// counting is a policy that counts what it is schedules.
type counting struct {
	retry.Policy
	schedules, calls atomic.Int32
}

func (c *counting) NewBackOff() backoff.BackOff {
	c.schedules.Add(1)
	return &countingSchedule{c.Policy.NewBackOff(), c}
}

type countingSchedule struct {
	backoff.BackOff
	c *counting
}

func (s *countingSchedule) NextBackOff() time.Duration {
	s.c.calls.Add(1)
	return s.BackOff.NextBackOff()
}

// wantAsked fails unless the policy was asked for so many pauses, by one operation.
func (c *counting) wantAsked(t *testing.T, want int32) {
	t.Helper()
	if schedules, calls := c.schedules.Load(), c.calls.Load(); schedules != 1 || calls != want {
		t.Errorf("%d schedules, %d calls; want one, %d calls", schedules, calls, want)
	}
}

// In Java: TestFrameworkEdges.testRetry.
func TestRetryCountIsThatOfPolicy(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 1, 3} {
		for name, run := range map[string]func(t *testing.T, client *framework.Client) error{
			"foreground": func(t *testing.T, client *framework.Client) error {
				t.Helper()
				_, err := client.GetData().ForPath(testenv.Context(t), "/")
				return err
			},
			"background": func(t *testing.T, client *framework.Client) error {
				t.Helper()
				results := newEvents()
				must(t, client.GetData().InBackground(results.callback).ForPath(testenv.Context(t), "/"))
				return receive(t, results).Err
			},
		} {
			t.Run(name, func(t *testing.T) {
				policy := &counting{Policy: retry.NTimes(retries, 30*time.Millisecond)}
				proxy, connect := newProxy(t)
				client := connectClient(t, connect, framework.WithRetryPolicy(policy))
				proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.CutBefore})
				err := run(t, client)
				wantErr(t, "get data", err, framework.ErrConnectionLoss)
				wantErr(t, "get data", err, zk.ErrConnectionClosed) // go-zookeeper's name for it
				var op *framework.OpError
				if !errors.As(err, &op) || op.Attempts != retries+1 || op.Op != "getData" || op.Path != "/" {
					t.Errorf("error %#v, want getData of / with %d attempts", err, retries+1)
				}
				if n := requests(proxy, "getData"); n != retries+1 {
					t.Errorf("%d attempts, want %d", n, retries+1)
				}
				policy.wantAsked(t, int32(retries+1))
			})
		}
	}
}

func TestRetrySuccessAndFinalErrorSkipPolicy(t *testing.T) {
	t.Parallel()
	policy := &counting{Policy: retry.Forever(time.Millisecond)}
	client := connectClient(t, testenv.ConnectString(t), framework.WithRetryPolicy(policy))
	create(t, client, "/a", "")
	_, err := client.GetData().ForPath(testenv.Context(t), "/b")
	wantErr(t, "get data", err, zk.ErrNoNode)
	if n := policy.schedules.Load(); n != 0 {
		t.Errorf("%d schedules, want none", n)
	}
}

// An attempt of which the first part succeeded is one attempt all the same: the steps of an operation share
// its retries.
func TestRetryStepsOfOperationShareRetries(t *testing.T) {
	t.Parallel()
	policy := &counting{Policy: retry.NTimes(2, 30*time.Millisecond)}
	proxy, connect := newProxy(t)
	client := connectClient(t, connect, framework.WithRetryPolicy(policy))
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Action: curatortest.CutBefore})
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(t), "/a/b/c", nil)
	wantErr(t, "create", err, framework.ErrConnectionLoss)
	if creates, looks := requests(proxy, "create2"), requests(proxy, "exists"); creates != 3 || looks != 3 {
		t.Errorf("%d attempts, %d of the parents; want 3", creates, looks)
	}
	policy.wantAsked(t, 3)
}

// C-559: loops in loops must not multiply.
func TestCallWithRetryNestedSharesOuterLoop(t *testing.T) {
	t.Parallel()
	policy := &counting{Policy: retry.NTimes(2, 30*time.Millisecond)}
	proxy, connect := newProxy(t)
	client, states := connectRecorded(t, connect, framework.WithRetryPolicy(policy))
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.CutBefore})
	outer, middle, inner := 0, 0, 0
	err := client.CallWithRetry(testenv.Context(t), func(ctx context.Context) error {
		outer++
		return client.CallWithRetry(ctx, func(ctx context.Context) error {
			middle++
			if middle > 1 { // the answer that is lost comes before the state: a try behind it would find no connection
				states.want(t, suspended, reconnected)
			}
			if err := client.BlockUntilConnected(ctx); err != nil {
				return err
			}
			return client.UsingNamespace("").CallWithRetry(ctx, func(ctx context.Context) error {
				inner++
				_, err := client.GetData().ForPath(ctx, "/")
				return err
			})
		})
	})
	wantErr(t, "loop", err, framework.ErrConnectionLoss)
	if n := requests(proxy, "getData"); outer != 3 || middle != 3 || inner != 3 || n != 3 {
		t.Errorf("called %d, %d and %d times, %d attempts; want 3", outer, middle, inner, n)
	}
	policy.wantAsked(t, 3)
}

func TestCallWithRetry(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t),
		framework.WithRetryPolicy(retry.NTimes(3, time.Millisecond)))
	other := errors.New("something else")
	tests := []struct {
		name    string
		results []error
		want    error
		calls   int
	}{
		{"success", []error{nil}, nil, 1},
		{
			"success at last",
			[]error{zk.ErrSessionExpired, zk.ErrSessionMoved, framework.ErrOperationTimeout, nil},
			nil, 4,
		},
		{"never", []error{zk.ErrConnectionClosed}, zk.ErrConnectionClosed, 4},
		{"final error", []error{zk.ErrNoNode}, zk.ErrNoNode, 1},
		{"final error at last", []error{zk.ErrConnectionClosed, other}, other, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			err := client.CallWithRetry(testenv.Context(t), func(context.Context) error {
				calls++
				return tt.results[min(calls, len(tt.results))-1]
			})
			if !errors.Is(err, tt.want) || calls != tt.calls {
				t.Errorf("%v after %d calls, want %v after %d", err, calls, tt.want, tt.calls)
			}
		})
	}
}

func TestRetryPauseEndsEarly(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	fail := func(paused chan<- struct{}) func(context.Context) error {
		return func(context.Context) error {
			close(paused)
			return zk.ErrConnectionClosed
		}
	}
	t.Run("its context", func(t *testing.T) {
		client := connectClient(t, connect, framework.WithRetryPolicy(retry.OneTime(time.Hour)))
		ctx, cancel := context.WithCancel(testenv.Context(t))
		paused, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- client.CallWithRetry(ctx, fail(paused)) }()
		<-paused
		cancel()
		err := receive(t, result)
		wantErr(t, "loop", err, context.Canceled)
		wantErr(t, "loop", err, zk.ErrConnectionClosed)
	})
	t.Run("the client", func(t *testing.T) {
		client := connectClient(t, connect, framework.WithRetryPolicy(retry.OneTime(time.Hour)))
		paused, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- client.CallWithRetry(testenv.Context(t), fail(paused)) }()
		<-paused
		closeClient(t, client)
		wantErr(t, "loop", receive(t, result), framework.ErrClosed)
	})
}

// An operation waits for a connection once, not at each attempt; 1afa38ea: also for less than a second.
func TestRetryWaitsForConnectionOnce(t *testing.T) {
	const pauses = 2 * 50 * time.Millisecond
	policy := retry.NTimes(2, 50*time.Millisecond)
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	for _, timeout := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				client := startClient(t, "memory:2181", framework.WithDialer(refused),
					framework.WithConnectionTimeout(timeout), framework.WithRetryPolicy(policy))
				measure := func(what string, do func() error) {
					t.Helper()
					began := time.Now()
					wantErr(t, what, do(), framework.ErrConnectionLoss)
					if d, want := time.Since(began), timeout+pauses; d != want {
						t.Errorf("%s took %v, want %v and %v", what, d, timeout, pauses)
					}
				}
				measure("an operation", func() error {
					_, err := client.GetData().ForPath(ctx, "/")
					return err
				})
				measure("an operation in the background", func() error { // C-52
					results := newEvents()
					must(t, client.GetData().InBackground(results.callback).ForPath(ctx, "/"))
					return receive(t, results).Err
				})
				measure("a loop", func() error {
					return client.CallWithRetry(ctx, func(ctx context.Context) error {
						_, err := client.GetData().ForPath(ctx, "/")
						return err
					})
				})
				closeClient(t, client)
			})
		})
	}
}

// The wait ends when a connection stands, and the attempt it was for counts as none.
func TestRetryDoesNotCountWaitForConnection(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	restore := proxy.Faults().RefuseConnects()
	client := newClient(t, connect, framework.WithRetryPolicy(retry.NTimes(0, 0)))
	recorded := record(client)
	start(t, client)
	result := make(chan error, 1)
	go func() {
		_, err := client.GetData().ForPath(testenv.Context(t), "/")
		result <- err
	}()
	recorded.want(t, suspended)
	restore()
	if err := receive(t, result); err != nil {
		t.Error(err)
	}
}

func TestContextBoundsWaitOfOperation(t *testing.T) {
	t.Parallel()
	client := startClient(t, nowhere, framework.WithConnectionTimeout(time.Hour),
		framework.WithRetryPolicy(retry.Forever(time.Hour)))
	for name, c := range map[string]*framework.Client{
		"client": client, "namespace": client.UsingNamespace("ns"),
	} {
		for _, op := range operations {
			if offline(op) {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			took(t, soon, op.name, func() {
				wantErr(t, name+": "+op.name, op.foreground(ctx, c, "/a"), context.DeadlineExceeded)
			})
			wantErr(t, name+": "+op.name, op.foreground(ctx, c, "/a"), context.DeadlineExceeded) // has ended before
			cancel()
		}
	}
}

// C-720.
func TestOperationDuringCloseReturnsPromptly(t *testing.T) {
	t.Parallel()
	client := newClient(t, nowhere, framework.WithConnectionTimeout(time.Hour),
		framework.WithRetryPolicy(retry.Forever(time.Hour)))
	recorded := record(client)
	start(t, client)
	ctx := testenv.Context(t)
	waits := map[string]func() error{
		"loop": func() error {
			return client.CallWithRetry(ctx, func(context.Context) error { return errors.New("called") })
		},
		"session loop": func() error {
			return client.CallInSession(ctx, true, func(context.Context) error { return errors.New("called") })
		},
		"wait for the connection": func() error { return client.BlockUntilConnected(ctx) },
	}
	for _, op := range operations {
		if !offline(op) {
			waits[op.name] = func() error { return op.foreground(ctx, client, "/a") }
		}
	}
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(waits))
	for name, wait := range waits {
		go func() { results <- result{name, wait()} }()
	}
	recorded.want(t, suspended)
	took(t, soon, "Close and the operations", func() {
		closeClient(t, client)
		for range waits {
			r := receive(t, results)
			wantErr(t, r.name, r.err, framework.ErrClosed)
		}
	})
}

// In Java: TestSessionFailRetryLoop.
func TestCallInSession(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	// untilLost is a call that lasts as long as its session.
	untilLost := func(t *testing.T, client *framework.Client, sessions *[]int64) func(context.Context) error {
		t.Helper()
		return func(ctx context.Context) error {
			*sessions = append(*sessions, client.SessionID())
			if len(*sessions) == 1 {
				expire(t, client)
				<-ctx.Done()
				wantErr(t, "cause", context.Cause(ctx), framework.ErrSessionFailed)
				return ctx.Err()
			}
			_, err := client.CheckExists().ForPath(ctx, "/")
			return err
		}
	}
	t.Run("fail", func(t *testing.T) {
		client := connectClient(t, connect)
		var sessions []int64
		err := client.CallInSession(testenv.Context(t), false, untilLost(t, client, &sessions))
		wantErr(t, "call", err, framework.ErrSessionFailed)
		wantErr(t, "call", err, context.Canceled) // what the function has returned
		if len(sessions) != 1 {
			t.Errorf("called %d times, want once", len(sessions))
		}
	})
	t.Run("again", func(t *testing.T) {
		client := connectClient(t, connect)
		var sessions []int64
		if err := client.CallInSession(testenv.Context(t), true, untilLost(t, client, &sessions)); err != nil {
			t.Error(err)
		}
		if len(sessions) != 2 || sessions[0] == sessions[1] {
			t.Errorf("sessions %#x, want two", sessions)
		}
	})
	t.Run("success in a session that is lost counts for nothing", func(t *testing.T) {
		client := connectClient(t, connect)
		err := client.CallInSession(testenv.Context(t), false, func(ctx context.Context) error {
			expire(t, client)
			<-ctx.Done()
			return nil
		})
		wantErr(t, "call", err, framework.ErrSessionFailed)
	})
	t.Run("error of the function", func(t *testing.T) {
		client := connectClient(t, connect)
		calls := 0
		err := client.CallInSession(testenv.Context(t), true, func(ctx context.Context) error {
			calls++
			_, err := client.GetData().ForPath(ctx, "/none")
			return err
		})
		wantErr(t, "call", err, zk.ErrNoNode)
		if calls != 1 {
			t.Errorf("called %d times, want once", calls)
		}
	})
	t.Run("a dropped connection is no end", func(t *testing.T) {
		proxy, connect := newProxy(t)
		client := connectClient(t, connect)
		err := client.CallInSession(testenv.Context(t), false, func(ctx context.Context) error {
			proxy.Faults().CutAll()
			_, err := client.CheckExists().ForPath(ctx, "/")
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("canceled while waiting", func(t *testing.T) {
		client := startClient(t, nowhere)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := client.CallInSession(ctx, true, func(context.Context) error { return errors.New("called") })
		wantErr(t, "call", err, context.DeadlineExceeded)
	})
	t.Run("closed", func(t *testing.T) {
		for _, again := range []bool{true, false} {
			client := connectClient(t, connect)
			err := client.CallInSession(testenv.Context(t), again, func(ctx context.Context) error {
				go closeClient(t, client)
				<-ctx.Done()
				return ctx.Err()
			})
			wantErr(t, "call", err, framework.ErrClosed)
			closeClient(t, client)
		}
	})
}

// stubborn is a policy of its own kind: it also waits for nodes to appear.
type stubborn struct{ retry.Policy }

func (s stubborn) Retryable(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || s.Policy.Retryable(err)
}

func TestRetryPolicyOfProgram(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect, framework.WithRetryPolicy(stubborn{retry.Forever(5 * time.Millisecond)}))
	results := newEvents()
	must(t, client.GetData().InBackground(results.callback).ForPath(testenv.Context(t), "/late"))
	create(t, connectClient(t, connect), "/late", "data")
	if ev := receive(t, results); ev.Err != nil || string(ev.Data) != "data" {
		t.Errorf("%q, %v", ev.Data, ev.Err)
	}

	var schedules atomic.Int32
	policy := retry.Func(func() backoff.BackOff {
		schedules.Add(1)
		return backoff.WithMaxRetries(backoff.NewConstantBackOff(30*time.Millisecond), 2)
	})
	proxy, through := newProxy(t)
	client = connectClient(t, through, framework.WithRetryPolicy(policy))
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutBefore})
	_, err := client.Create().WithMode(builders.Ephemeral).ForPath(testenv.Context(t), "/a", nil)
	wantErr(t, "create", err, framework.ErrConnectionLoss)
	if n := requests(proxy, "create2"); schedules.Load() != 1 || n != 3 {
		t.Errorf("%d schedules and %d attempts, want one and 3", schedules.Load(), n)
	}
}

// In Java: TestFrameworkBackground.testRetries. The pause is not that of operations out of flight: the others keep
// their order.
func TestRetryPauseOfBackgroundHoldsUpNothingOutOfFlight(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second // with Apache ZooKeeper the other operation has to be done by then
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client := newClient(t, connect, dial, framework.WithRetryPolicy(retry.NTimes(2, pause)))
		recorded := record(client)
		start(t, client)
		create(t, client, "/a", "")
		proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutBefore})
		began := time.Now()
		results, others := newEvents(), newEvents()
		must(t, client.SetData().InBackground(results.callback).ForPath(testenv.Context(t), "/a", nil))
		recorded.want(t, connected, suspended, reconnected)
		must(t, client.Sync().InBackground(others.callback).
			ForPath(builders.OutOfFlight(testenv.Context(t)), "/a"))
		receive(t, others)
		if d := time.Since(began); d >= pause {
			t.Errorf("another operation took %v", d)
		}
		ev := receive(t, results)
		if d := time.Since(began); ev.Err != nil || ev.Type != callbacks.SetData || d < pause {
			t.Errorf("%v %v after %v, want success after a pause of %v", ev.Type, ev.Err, d, pause)
		}
	})
}

// In Java: TestRetryLoop.testRetryForeverWithSessionFailed.
func TestSessionFailedPolicyEndsOperationWithSession(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client := connectClient(t, connect, dial, framework.WithSessionTimeout(testenv.SessionTimeout),
			framework.WithRetryPolicy(retry.SessionFailed(retry.Forever(10*time.Millisecond))))
		restore := outage(proxy)
		result := make(chan error, 1)
		results := newEvents()
		must(t, client.GetData().InBackground(results.callback).ForPath(t.Context(), "/"))
		go func() {
			_, err := client.GetData().ForPath(testenv.Context(t), "/")
			result <- err
		}()
		<-client.Session().Context().Done()
		restore()
		wantErr(t, "get data", receive(t, result), zk.ErrSessionExpired)
		wantErr(t, "get data in background", receive(t, results).Err, zk.ErrSessionExpired)
		_, err := client.GetData().ForPath(testenv.Context(t), "/") // of the next session
		must(t, err)
	})
}

// An operation behind one whose connection was lost waits for the next connection, like any other.
func TestOperationBehindLostOneIsSent(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(0, 0)))
	for range 50 {
		proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.CutBefore})
		_, err := client.GetData().ForPath(testenv.Context(t), "/")
		wantErr(t, "first", err, framework.ErrConnectionLoss)
		_, err = client.GetData().ForPath(testenv.Context(t), "/")
		must(t, err)
	}
}
