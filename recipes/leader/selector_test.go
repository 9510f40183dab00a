package leader_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/retry"
)

// turns is the function of a selector: it reports each turn, and leads until it has to stop or its context ends.
type turns struct {
	began chan context.Context
	stop  chan error
	ended chan error // with the cause, nil if it had to stop
}

func newTurns() *turns {
	return &turns{began: make(chan context.Context, 100), stop: make(chan error), ended: make(chan error, 100)}
}

func (f *turns) take(ctx context.Context) error {
	f.began <- ctx
	select {
	case err := <-f.stop:
		f.ended <- nil
		return err
	case <-ctx.Done():
		f.ended <- context.Cause(ctx)
		return ctx.Err()
	}
}

func startSelector(
	tb testing.TB, client *framework.Client, f *turns, opts ...leader.SelectorOption,
) *leader.LeaderSelector {
	tb.Helper()
	s := leader.NewLeaderSelector(client, electionPath, f.take, opts...)
	must(tb, s.Start())
	tb.Cleanup(func() { must(tb, s.Close()) })
	return s
}

func receive[T any](tb testing.TB, ch <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-ch:
	case <-testenv.Context(tb).Done():
		tb.Fatalf("not in time: %s", what)
	}
	return v
}

// In Java: TestLeaderSelectorParticipants.testId.
func TestSelectorLeadsOncePerRequeue(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	f := newTurns()
	s := startSelector(t, client, f, leader.WithID("me"))
	for range 3 {
		ctx := receive(t, f.began, "it leads")
		l := leader.LeadershipOf(ctx)
		if l == nil || !s.HasLeadership() || s.Requeue() {
			t.Error("it does not lead, or was queued while it leads")
		}
		if name := regexp.MustCompile(`^/election/_c_[0-9a-f-]{36}-lock-\d{10}$`); !name.MatchString(l.Path()) {
			t.Errorf("path %s", l.Path())
		}
		data, err := client.GetData().ForPath(testenv.Context(t), l.Path())
		if err != nil || string(data) != "me" {
			t.Errorf("data %q, error %v", data, err)
		}
		f.stop <- nil
		receive(t, f.ended, "it is over")
		testenv.Eventually(t, s.Requeue, "it is queued again")
	}
	receive(t, f.began, "it leads")
	must(t, s.Close())
	if cause := receive(t, f.ended, "it is over"); !errors.Is(cause, leader.ErrClosed) {
		t.Errorf("cause %v", cause)
	}
	if s.Requeue() || s.HasLeadership() || s.InterruptLeadership() {
		t.Error("a closed selector leads")
	}
	awaitNoNode(t, connect)
}

// In Java: TestLeaderSelector.testAutoRequeue, TestLeaderSelectorWithExecutor.test.
func TestSelectorsTakeTurns(t *testing.T) {
	connect := testenv.ConnectString(t)
	const selectors, rounds = 3, 4
	var leading, most atomic.Int32
	var mu sync.Mutex
	count := map[string]int{}
	done := make(chan struct{})
	for i := range selectors {
		id := fmt.Sprint(i)
		s := leader.NewLeaderSelector(newClient(t, connect), electionPath, func(context.Context) error {
			if n := leading.Add(1); n > most.Load() {
				most.Store(n)
			}
			mu.Lock()
			count[id]++
			if len(count) == selectors && count["0"] >= rounds && count["1"] >= rounds && count["2"] >= rounds {
				select {
				case <-done:
				default:
					close(done)
				}
			}
			mu.Unlock()
			leading.Add(-1)
			return nil
		}, leader.WithAutoRequeue(), leader.WithID(id))
		must(t, s.Start())
		t.Cleanup(func() { must(t, s.Close()) })
	}
	receive(t, done, "each has had its turns")
	if n := most.Load(); n != 1 {
		t.Errorf("%d lead at once", n)
	}
}

// In Java: TestLeaderSelector.testRotatingLeadership.
func TestSelectorsLeadOnceInEachRound(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, steady)
	const many = 4
	led := make(chan string, many)
	var all []*leader.LeaderSelector
	for i := range many {
		id := fmt.Sprint(i)
		s := leader.NewLeaderSelector(client, electionPath, func(context.Context) error {
			led <- id
			return nil
		})
		t.Cleanup(func() { must(t, s.Close()) })
		all = append(all, s)
	}
	for round := range 3 {
		for _, s := range all {
			if round == 0 {
				must(t, s.Start())
				continue
			}
			testenv.Eventually(t, s.Requeue, "it is queued again")
		}
		seen := map[string]bool{}
		for range all {
			seen[receive(t, led, "one leads")] = true
		}
		if len(seen) != many {
			t.Errorf("round %d: only %v led", round, seen)
		}
	}
}

// In Java: TestLeaderSelector.testClosing (CURATOR-337).
func TestSelectorWaitingClosedKeepsLeader(t *testing.T) {
	connect := testenv.ConnectString(t)
	first, second := newTurns(), newTurns()
	s := startSelector(t, newClient(t, connect, steady), first)
	ctx := receive(t, first.began, "it leads")
	waiting := startSelector(t, newClient(t, connect, steady), second)
	awaitParticipants(t, s, 2)
	if waiting.InterruptLeadership() || waiting.Requeue() || waiting.HasLeadership() {
		t.Error("it only waits")
	}
	must(t, waiting.Close())
	awaitParticipants(t, s, 1)
	if ctx.Err() != nil || !s.HasLeadership() || len(second.began) != 0 {
		t.Error("the leader has changed")
	}
	must(t, s.Close())
	if s.HasLeadership() {
		t.Error("a closed selector leads")
	}
	awaitNoNode(t, connect)
}

// In Java: TestLeaderSelector.testInterruption, TestLeaderSelector.testInterruptLeadership (CURATOR-468).
func TestSelectorInterruptedLeavesNoNode(t *testing.T) {
	connect := testenv.ConnectString(t)
	f := newTurns()
	s := startSelector(t, newClient(t, connect, steady), f)
	receive(t, f.began, "it leads")
	if !s.InterruptLeadership() {
		t.Error("not interrupted")
	}
	if cause := receive(t, f.ended, "it is over"); !errors.Is(cause, leader.ErrInterrupted) {
		t.Errorf("cause %v", cause)
	}
	awaitNoNode(t, connect)
	if s.InterruptLeadership() || s.HasLeadership() {
		t.Error("it leads")
	}
}

// In Java: TestLeaderSelector.testInterruptLeadershipWithRequeue (CURATOR-518). Its next turn is not the one that was
// interrupted.
func TestSelectorInterruptedWithAutoRequeueLeadsAgain(t *testing.T) {
	f, goOn := newTurns(), make(chan struct{})
	take := func(ctx context.Context) error {
		defer func() { <-goOn }()
		return f.take(ctx)
	}
	s := leader.NewLeaderSelector(newClient(t, testenv.ConnectString(t), steady), electionPath, take,
		leader.WithAutoRequeue())
	must(t, s.Start())
	defer func() {
		close(goOn)
		must(t, s.Close())
	}()
	for range 5 {
		ctx := receive(t, f.began, "it leads")
		if ctx.Err() != nil {
			t.Errorf("it begins with the end: %v", context.Cause(ctx))
		}
		if !s.InterruptLeadership() {
			t.Error("not interrupted")
		}
		if cause := receive(t, f.ended, "it is over"); !errors.Is(cause, leader.ErrInterrupted) {
			t.Errorf("cause %v", cause)
		}
		if s.InterruptLeadership() {
			t.Error("interrupted once more")
		}
		goOn <- struct{}{}
	}
	receive(t, f.began, "it leads")
}

// In Java: TestLeaderSelector.testInterruptLeadershipWithRequeue (CURATOR-518, CURATOR-671).
func TestSelectorInterruptedMayRequeue(t *testing.T) {
	connect := testenv.ConnectString(t)
	f := newTurns()
	s := startSelector(t, newClient(t, connect), f)
	for range 3 {
		receive(t, f.began, "it leads")
		if !s.InterruptLeadership() {
			t.Error("not interrupted")
		}
		if cause := receive(t, f.ended, "it is over"); !errors.Is(cause, leader.ErrInterrupted) {
			t.Errorf("cause %v", cause)
		}
		testenv.Eventually(t, s.Requeue, "it is queued again")
	}
	receive(t, f.began, "it leads")
	must(t, s.Close())
	awaitNoNode(t, connect)
}

// In Java: TestLeaderSelector.testKillSessionThenCloseShouldElectNewLeader.
func TestSelectorSessionExpiredLosesLeadership(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	first, second := newTurns(), newTurns()
	s := startSelector(t, client, first, leader.WithAutoRequeue())
	receive(t, first.began, "it leads")
	other := startSelector(t, newClient(t, connect), second)
	testenv.Eventually(t, func() bool {
		all, err := s.Participants(testenv.Context(t))
		return err == nil && len(all) == 2 && all[0].IsLeader && !all[1].IsLeader
	}, "both take part")
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	if cause := receive(t, first.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	receive(t, second.began, "the other leads")
	if !other.HasLeadership() {
		t.Error("it does not lead")
	}
	second.stop <- nil
	receive(t, first.began, "it leads again")
}

// In Java: TestLeaderSelector.testErrorPolicies, TestLeaderSelector.testServerDying.
func TestSelectorErrorPolicyDecidesLeadershipInOutage(t *testing.T) {
	for name, policy := range map[string]framework.ErrorPolicy{
		"standard": framework.StandardErrorPolicy{}, "session": framework.SessionErrorPolicy{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, connect, _ := newProxy(t)
			client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
				framework.WithConnectionStateErrorPolicy(policy))
			f := newTurns()
			s := startSelector(t, client, f)
			ctx := receive(t, f.began, "it leads")
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			if name == "standard" {
				if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
					t.Errorf("cause %v", cause)
				}
				restore()
				return
			}
			testenv.Eventually(t, func() bool { return !client.IsConnected() }, "the connection is lost")
			restore()
			must(t, client.BlockUntilConnected(testenv.Context(t)))
			if ctx.Err() != nil || !s.HasLeadership() {
				t.Error("leadership was lost")
			}
		})
	}
}

func TestSelectorFunctionFailsOrPanicsNextLeads(t *testing.T) {
	connect := testenv.ConnectString(t)
	failed := make(chan error, 10)
	turn := 0
	s := leader.NewLeaderSelector(newClient(t, connect), electionPath, func(context.Context) error {
		turn++
		switch turn {
		case 1:
			return errors.New("failed on purpose")
		case 2:
			panic("on purpose")
		}
		return nil
	}, leader.WithOnError(func(_ context.Context, err error) { failed <- err }))
	must(t, s.Start())
	if err := receive(t, failed, "the error"); err.Error() != "failed on purpose" {
		t.Errorf("got %v", err)
	}
	testenv.Eventually(t, s.Requeue, "it is queued again")
	err := receive(t, failed, "the panic")
	if !strings.Contains(err.Error(), "panic in the function of the leader: on purpose") {
		t.Errorf("got %v", err)
	}
	awaitNoNode(t, connect)
	must(t, s.Close())
}

func TestSelectorLifeCycle(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	s := leader.NewLeaderSelector(client, electionPath, func(context.Context) error { return nil }, leader.WithID("me"))
	if s.Requeue() || s.ID() != "me" {
		t.Error("queued before Start")
	}
	if who, err := s.Leader(ctx); err != nil || who != (leader.Participant{}) {
		t.Errorf("%+v, error %v", who, err)
	}
	must(t, s.Start())
	if err := s.Start(); !errors.Is(err, leader.ErrStarted) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
	must(t, s.Close())
	if err := s.Start(); !errors.Is(err, leader.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := leader.NewLeaderSelector(client, electionPath, nil).Start(); !errors.Is(err, framework.ErrBadArguments) {
		t.Errorf("without a function the error is %v", err)
	}
	if err := leader.NewLeaderSelector(client, "//", nil).Start(); err == nil {
		t.Error("a bad path is accepted")
	}
	if leader.LeadershipOf(ctx) != nil {
		t.Error("a leadership without a leader")
	}
}

// In Java: TestLeaderSelectorEdges.flappingTest: the connection is cut at each request in turn.
func TestSelectorLostRepliesLeaveNoNode(t *testing.T) {
	testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
		proxy, connect, direct := newProxy(t)
		client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		injection := proxy.Faults().Add(cutAfter(k))
		f := newTurns()
		s := startSelector(t, client, f, leader.WithAutoRequeue())
		receive(t, f.began, "it leads")
		must(t, s.Close())
		awaitNoNode(t, direct)
		return injection.Hits() > 0
	})
}

// In Java: TestLeaderSelectorEdges.flappingTest, where the retries are used up.
func TestSelectorCreateCancelledLeavesNoNode(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	client := newClient(t, connect, steady,
		framework.WithRetryPolicy(retry.NTimes(0, 0)))
	must(t, client.CreateContainers(testenv.Context(t), electionPath))
	injection := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"create2"}, Path: "/**" + electionPath + "/*", Count: 1, Action: curatortest.CutAfter,
	})
	f, failed := newTurns(), make(chan error, 1)
	startSelector(t, client, f, leader.WithOnError(func(_ context.Context, err error) { failed <- err }))
	must(t, injection.Wait(testenv.Context(t)))
	if err := receive(t, failed, "the error"); !errors.Is(err, framework.ErrConnectionLoss) {
		t.Errorf("got %v", err)
	}
	awaitNoNode(t, direct)
	if len(f.began) != 0 {
		t.Error("it leads")
	}
	startSelector(t, client, f)
	receive(t, f.began, "the other leads")
}

// CURATOR-671: Requeue works right after leadership has ended.
func TestSelectorEndedMayBeRequeued(t *testing.T) {
	f := newTurns()
	s := startSelector(t, newClient(t, testenv.ConnectString(t), steady), f)
	for range 100 {
		receive(t, f.began, "it leads")
		if !s.InterruptLeadership() || s.HasLeadership() {
			t.Error("not interrupted")
		}
		if !s.Requeue() {
			t.Fatal("it is refused")
		}
		receive(t, f.ended, "it is over")
	}
	receive(t, f.began, "it leads again")
}

func TestSelectorClientClosedEnds(t *testing.T) {
	t.Parallel()
	_, connect, _ := newProxy(t)
	client := newClient(t, connect)
	var failures atomic.Int64
	f := newTurns()
	s := startSelector(t, client, f, leader.WithAutoRequeue(),
		leader.WithOnError(func(context.Context, error) { failures.Add(1) }))
	receive(t, f.began, "it leads")
	must(t, client.Close())
	testenv.Eventually(t, s.Requeue, "it is no longer queued")
	must(t, s.Close())
	if n := failures.Load(); n > 3 { // the end of the lead, of the next turn, and of the one asked for
		t.Errorf("%d failures", n)
	}
}

// A test that fails in the function ends its goroutine.
func TestSelectorFunctionGoexitGivesLeadershipUp(t *testing.T) {
	t.Parallel()
	_, connect, _ := newProxy(t)
	calls := make(chan error, 100)
	failures := make(chan error, 100)
	s := leader.NewLeaderSelector(newClient(t, connect), electionPath, func(ctx context.Context) error {
		calls <- ctx.Err()
		runtime.Goexit()
		return nil
	}, leader.WithOnError(func(_ context.Context, err error) { failures <- err }))
	must(t, s.Start())
	for range 2 {
		must(t, receive(t, calls, "it leads"))
		if err := receive(t, failures, "it has ended"); err == nil {
			t.Error("no error")
		}
		testenv.Eventually(t, s.Requeue, "it may be queued again")
	}
	must(t, receive(t, calls, "it leads"))
	must(t, s.Close())
	awaitNoNode(t, connect)
}

// quitter is an ACL provider that ends the goroutine of its caller, as a test that fails does.
type quitter struct{ asked chan struct{} }

func (q quitter) DefaultACL() []zk.ACL { return zk.WorldACL(zk.PermAll) }

func (q quitter) ACLForPath(string) []zk.ACL {
	q.asked <- struct{}{}
	runtime.Goexit()
	return nil
}

// The provider is asked for the node of the selector, outside of the function: the selector pauses, as after any other
// failure.
func TestSelectorProviderGoexitIsAskedAgainAfterPause(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		provider := quitter{make(chan struct{}, 1000)}
		failures := make(chan error, 1000)
		client := newClient(t, place.Addr()+chroot, framework.WithDialer(place.DialContext),
			framework.WithACLProvider(provider))
		s := leader.NewLeaderSelector(client, electionPath, func(context.Context) error { return nil },
			leader.WithAutoRequeue(),
			leader.WithOnError(func(_ context.Context, err error) { failures <- err }))
		must(t, s.Start())
		if err := receive(t, failures, "it has failed"); !strings.Contains(err.Error(), "a provider of the client") {
			t.Errorf("the error is %v", err)
		}
		<-time.After(5 * time.Second)
		must(t, s.Close())
		if n := len(provider.asked); n > 10 {
			t.Errorf("asked %d times in 5 s", n)
		}
	})
}
