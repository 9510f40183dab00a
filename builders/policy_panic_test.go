package builders_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// unsure is a policy that panics.
type unsure struct{ retry.Policy }

func (unsure) Retryable(error) bool { panic("who knows") }

// A failure that the policy does not try again is reported without asking the policy once more on the dispatcher.
func TestPolicyThatPanicsDoesNotEndTheDispatcher(t *testing.T) {
	t.Parallel()
	client := startClient(t, "127.0.0.1:1", framework.WithConnectionTimeout(time.Millisecond),
		framework.WithRetryPolicy(unsure{retry.NTimes(0, 0)}))
	reported := make(chan framework.UnhandledError, 1)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { reported <- e })
	events := make(chan callbacks.Event, 1)
	err := client.Sync().InBackground(func(_ context.Context, ev callbacks.Event) { events <- ev }).
		ForPath(testenv.Context(t), "/a")
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, receive(t, events).Err, framework.ErrNotSent, "sync", "/a")
	wantErr(t, receive(t, reported).Err, framework.ErrNotSent, "sync", "/a")
}
