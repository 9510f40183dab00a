package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// orderFixture is a client and a server whose answers to writes stop at will.
type orderFixture struct {
	server  *curatortest.Server
	client  *framework.Client
	reports chan string
}

func newOrderFixture(t *testing.T, policy retry.Policy) *orderFixture {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext),
		framework.WithSessionTimeout(10*time.Second), framework.WithRetryPolicy(policy))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if _, err := client.Create().ForPath(t.Context(), "/node", []byte("none")); err != nil {
		t.Fatal(err)
	}
	return &orderFixture{server, client, make(chan string, 100)}
}

// write begins a write of data whose report has its error, if any.
func (f *orderFixture) write(ctx context.Context, t *testing.T, data string) {
	t.Helper()
	err := f.client.SetData().InBackground(func(_ context.Context, ev callbacks.Event) {
		report := data
		if ev.Err != nil {
			report += " failed"
		}
		f.reports <- report
	}).ForPath(ctx, "/node", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
}

func (f *orderFixture) wants(t *testing.T, data string, reports ...string) {
	t.Helper()
	var got []string
	for range reports {
		got = append(got, <-f.reports)
	}
	if diff := cmp.Diff(reports, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if node, err := f.client.GetData().ForPath(t.Context(), "/node"); err != nil || string(node) != data {
		t.Errorf("the node has %q, want %q; error %v", node, data, err)
	}
}

func (f *orderFixture) cutAtWrites(n int) {
	f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: n, Action: curatortest.CutBefore})
}

func TestOrderWriteAfterLossWaitsForRetriedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.cutAtWrites(1)
		f.write(t.Context(), t, "first")
		synctest.Wait() // the first one waits for its retry
		f.write(t.Context(), t, "second")
		f.wants(t, "second", "first", "second")
	})
}

func TestOrderPipelinedWritesOverSeveralLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.ExponentialBackoff(time.Second, 5)) // each pause is random
		f.cutAtWrites(3)
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			f.write(t.Context(), t, want[i])
		}
		f.wants(t, "19", want...)
	})
}

func TestOrderForegroundWriteWaitsForRetriedBackgroundWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.cutAtWrites(1)
		f.write(t.Context(), t, "background")
		synctest.Wait()
		if _, err := f.client.SetData().ForPath(t.Context(), "/node", []byte("foreground")); err != nil {
			t.Fatal(err)
		}
		f.wants(t, "foreground", "background")
	})
}

func TestOrderPolicyThatGivesUpLetsNextWriteGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(1, time.Second))
		f.cutAtWrites(2)
		f.write(t.Context(), t, "first")
		synctest.Wait()
		<-time.After(500 * time.Millisecond)
		f.write(t.Context(), t, "second") // sent with the first one, and lost once
		f.wants(t, "second", "first failed", "second")
	})
}

func TestOrderWriteOutOfFlightDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.cutAtWrites(1)
		f.write(t.Context(), t, "first")
		synctest.Wait()
		f.write(builders.OutOfFlight(t.Context()), t, "second")
		f.wants(t, "first", "second", "first")
	})
}

// The caller of the write that the others wait behind leaves.
func TestOrderAbandonedWriteLetsNextWriteGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Hour))
		f.cutAtWrites(1)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := f.client.SetData().ForPath(ctx, "/node", []byte("first"))
			left <- err
		}()
		synctest.Wait()
		f.write(t.Context(), t, "second")
		synctest.Wait()
		start := time.Now()
		cancel()
		if err := <-left; err == nil {
			t.Error("no error")
		}
		f.wants(t, "second", "second")
		if waited := time.Since(start); waited > time.Minute {
			t.Errorf("the second write waited for %v", waited)
		}
	})
}

// A wait behind a retry is no wait for a connection: it may last longer than the connection timeout.
func TestOrderWaitBehindRetryIsNotBoundByConnectionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(1, time.Minute))
		f.cutAtWrites(1)
		f.write(t.Context(), t, "first")
		synctest.Wait()
		f.write(t.Context(), t, "second")
		f.wants(t, "second", "first", "second")
	})
}

// The server loses one answer, and answers pings. The request goes on after the end of its caller, so that the oldest
// request in flight has no answer.
func TestLostAnswerWithPingsEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.DropReply})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := f.client.SetData().ForPath(ctx, "/node", []byte("first")); err == nil {
			t.Fatal("no fault")
		}
		<-time.After(3 * time.Second) // an eighth of the session timeout: nothing is sent behind an answer that is so late
		start, session := time.Now(), f.client.SessionID()
		if _, err := f.client.GetData().ForPath(t.Context(), "/node"); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > 10*time.Second || f.client.SessionID() != session {
			t.Errorf("waited for %v in session %#x, which is now %#x", waited, session, f.client.SessionID())
		}
	})
}
