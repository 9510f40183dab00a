package framework_test

import (
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv"
)

// A pipeline that is bound at once lives before its first request, and never travels on another connection.
func TestPipelinedNow(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect)
	if _, session := hook.PipelinedNow(ctx, client); session != 0 {
		t.Errorf("session %#x before the start", session)
	}
	states := record(client)
	start(t, client)
	states.want(t, connected)
	bound, session := hook.PipelinedNow(ctx, client)
	if session == 0 || session != client.SessionID() || !hook.IsPipelineLive(bound) {
		t.Errorf("session %#x of %#x; live: %v", session, client.SessionID(), hook.IsPipelineLive(bound))
	}

	proxy.Faults().CutAll()
	states.want(t, suspended, reconnected)
	if hook.IsPipelineLive(bound) {
		t.Error("the pipeline lives on the next connection")
	}
	_, err := client.CheckExists().ForPath(bound, "/")
	wantErr(t, "a read on the next connection", err, builders.ErrNotSent)
	again, session := hook.PipelinedNow(ctx, client)
	if session != client.SessionID() || !hook.IsPipelineLive(again) {
		t.Errorf("session %#x of %#x; live: %v", session, client.SessionID(), hook.IsPipelineLive(again))
	}
	_, err = client.CheckExists().ForPath(again, "/")
	must(t, err)

	must(t, client.Close())
	if _, session := hook.PipelinedNow(ctx, client); session != 0 {
		t.Errorf("session %#x after the end", session)
	}
}
