package chaos_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestFaultsOfAVictim(t *testing.T) {
	ctx := testenv.Context(t)
	proxy := curatortest.NewProxyT(t, testenv.Addr(t))
	client := testclient.Connect(t, proxy.ConnectString())
	states := make(chan framework.ConnectionState, 100)
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s != framework.Connected { // of which it may have heard before
			states <- s
		}
	})
	want := func(all ...framework.ConnectionState) {
		t.Helper()
		for _, state := range all {
			if got := <-states; got != state {
				t.Fatalf("%v, want %v", got, state)
			}
		}
	}
	victims := []*chaos.Victim{{Name: "the client", Proxy: proxy, Session: client.SessionID}}
	s := chaos.New(t)
	disturb := func(fault chaos.Fault) {
		t.Helper()
		if n := s.Disturb(ctx, chaos.Pace{}, func(n int) bool { return n == 1 }, fault); n != 1 {
			t.Errorf("%d faults", n)
		}
	}
	session := client.SessionID()
	disturb(chaos.Cut(victims))
	want(framework.Suspended, framework.Reconnected)
	if client.SessionID() != session {
		t.Error("another session")
	}
	disturb(chaos.Expire(victims, testenv.Addr(t)))
	want(framework.Suspended, framework.Lost, framework.Reconnected)
	if client.SessionID() == session {
		t.Error("the session has not expired")
	}
	disturb(chaos.Freeze(victims, time.Hour)) // and thaw, as the disturbance ends
	if _, err := client.CheckExists().ForPath(ctx, "/"); err != nil {
		t.Error(err)
	}
	if proxy.Faults().Connections() != 1 {
		t.Errorf("%d connections", proxy.Faults().Connections())
	}
}
