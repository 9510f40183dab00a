package framework_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// observed has o record a client.
func observed(o *observe.Observer, more ...framework.Option) []framework.Option {
	return append([]framework.Option{framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters)},
		more...)
}

// wantTree compares the spans with what the test wants to see. Other tests have the connection.
func wantTree(tb testing.TB, o *observe.Observer, want string) {
	tb.Helper()
	var got strings.Builder
	for line := range strings.Lines(o.Tree()) {
		if !strings.HasPrefix(line, "curator.connect") {
			got.WriteString(line)
		}
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		tb.Errorf("spans (-want +got):\n%s", diff)
	}
}

func wantValues(tb testing.TB, o *observe.Observer, metric, want string) {
	tb.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), o.Values(tb, metric)); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", metric, diff)
	}
}

// stateChanges returns the counted changes of the state. In real time a slow first try may have added one: replaced
// has pairs of a text with that change, and the text without it.
func stateChanges(tb testing.TB, o *observe.Observer, replaced ...string) string {
	tb.Helper()
	changes := o.Values(tb, "curator.connection.state_changes")
	if testenv.Real() {
		changes = strings.NewReplacer(replaced...).Replace(changes)
	}
	return changes
}

// awaitSpans waits for the end of spans that no callback reports.
func awaitSpans(tb testing.TB, o *observe.Observer, name string, n int) {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return len(o.Named(name)) >= n }, "spans "+name)
}

// wait returns the error of the operation that submit submits.
func wait(tb testing.TB, submit func(cb callbacks.BackgroundCallback) error) error {
	tb.Helper()
	done := newEvents()
	if err := submit(done.callback); err != nil {
		tb.Fatal(err)
	}
	return receive(tb, done).Err
}

// root returns the context of a request that nothing but its own end bounds.
func root(tb testing.TB, o *observe.Observer) (ctx context.Context, end func()) {
	tb.Helper()
	ctx, span := o.Start(testenv.Context(tb), "request")
	return ctx, func() { span.End() }
}
