package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/leader"
)

// unhandled is an observed client, and its unhandled errors.
type unhandled struct {
	*observe.Observer
	observe.Log
	t      *testing.T
	client *framework.Client
	errs   chan error
}

func newUnhandled(t *testing.T, connect string) *unhandled {
	t.Helper()
	u := &unhandled{Observer: observe.New(t), t: t, errs: make(chan error, 100)}
	u.client = newClient(t, connect, framework.WithLogger(u.Logger()),
		framework.WithTracerProvider(u.Tracers), framework.WithMeterProvider(u.Meters))
	u.client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { u.errs <- e.Err })
	return u
}

// want waits for an error, and has what is then closed reported, counted, and logged in a trace of the election, as
// often.
func (u *unhandled) want(text, errorType string, c interface{ Close() error }) error {
	u.t.Helper()
	err := receive(u.t, u.errs, text)
	must(u.t, c.Close())
	n := 1 + len(u.errs)
	if !strings.Contains(err.Error(), text) {
		u.t.Errorf("got %v", err)
	}
	series := fmt.Sprintf("curator.source=background,error.type=%s %d\n", errorType, n)
	if diff := cmp.Diff(series, u.Values(u.t, "curator.unhandled_errors")); diff != "" {
		u.t.Errorf("counted (-want +got):\n%s", diff)
	}
	records := 0
	for _, election := range u.Named("leader elect") {
		records += len(u.Records("trace_id=" + election.SpanContext().TraceID().String()))
	}
	if records != n || len(u.Records(electionPath)) != n {
		u.t.Errorf("logged %q", u.Records(""))
	}
	return err
}

func TestLatchErrorIsLoggedAndCounted(t *testing.T) {
	connect := testenv.ConnectString(t)
	admin := newClient(t, connect)
	_, err := admin.Create().WithACL(zk.WorldACL(zk.PermRead|zk.PermAdmin)...).ForPath(testenv.Context(t), electionPath,
		nil)
	must(t, err)
	u := newUnhandled(t, connect)
	latch := leader.NewLeaderLatch(u.client, electionPath)
	must(t, latch.Start())
	if err := u.want("not authenticated", "NOAUTH", latch); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
}

// lateCompression is a compression that fails with the error of a deadline of its own.
type lateCompression struct{ builders.CompressionProvider }

func (lateCompression) Compress(string, []byte) ([]byte, error) { return nil, context.DeadlineExceeded }

func TestLatchCompressionDeadlineErrorIsNotErrorOfLock(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t), framework.WithCompression(),
		framework.WithCompressionProvider(lateCompression{}))
	errs := make(chan error, 100)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { errs <- e.Err })
	startLatch(t, client, "late")
	err := receive(t, errs, "the error of the compression")
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "locks:") {
		t.Errorf("got %v", err)
	}
}

func TestLatchListenerPanicIsReported(t *testing.T) {
	u := newUnhandled(t, testenv.ConnectString(t))
	latch := leader.NewLeaderLatch(u.client, electionPath)
	latch.AddListener(func(context.Context, leader.LatchEvent) { panic("on purpose") })
	received := make(chan leader.LatchEvent, 10)
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) { received <- ev })
	must(t, latch.Start())
	if ev := receive(t, received, "the other listener"); !ev.IsLeader {
		t.Errorf("got %+v", ev)
	}
	if err := receive(t, u.errs, "the panic"); !strings.Contains(err.Error(), "panic in a listener: on purpose") {
		t.Errorf("got %v", err)
	}
	must(t, latch.Close())
}

func TestSelectorErrorWithoutHandlerIsReported(t *testing.T) {
	u := newUnhandled(t, testenv.ConnectString(t))
	fails := errors.New("on purpose")
	take := func(context.Context) error { return fails }
	s := leader.NewLeaderSelector(u.client, electionPath, take, leader.WithOnError(nil))
	must(t, s.Start())
	_ = u.want("on purpose", "_OTHER", s)

	panics := leader.WithOnError(func(context.Context, error) { panic("not again") })
	s = leader.NewLeaderSelector(u.client, electionPath, take, panics)
	must(t, s.Start())
	if err := receive(t, u.errs, "the panic"); !errors.Is(err, fails) || !strings.Contains(err.Error(), "not again") {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
}

func TestSelectorInterruptedReportsNoError(t *testing.T) {
	u := newUnhandled(t, testenv.ConnectString(t))
	f := newTurns()
	s := startSelector(t, u.client, f, leader.WithAutoRequeue())
	for range 2 { // the second begins when the end of the first was reported
		receive(t, f.began, "it leads")
		if !s.InterruptLeadership() {
			t.Error("it does not lead")
		}
	}
	receive(t, f.began, "it leads")
	must(t, s.Close())
	if len(u.errs) != 0 {
		t.Errorf("got %v", <-u.errs)
	}
}
