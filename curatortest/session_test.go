package curatortest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

func TestExpireSession(t *testing.T) {
	server := newServer(t)
	witness := newSession(t, server.Addr())
	for _, tt := range []struct {
		name   string
		expire func(ctx context.Context, id int64) error
	}{
		{"ExpireSession", func(ctx context.Context, id int64) error {
			return curatortest.ExpireSession(ctx, server.Addr(), id)
		}},
		{"KillSession", func(ctx context.Context, id int64) error {
			return curatortest.KillSession(ctx, server.Addr(), id)
		}},
		{"method ExpireSession", func(_ context.Context, id int64) error { return server.ExpireSession(id) }},
		{"method KillSession", func(_ context.Context, id int64) error { return server.KillSession(id) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testContext(t)
			victim := newSession(t, server.Addr())
			victim.create(t, "/ephemeral", "", zk.FlagEphemeral)
			id := victim.SessionID()

			must(t, tt.expire(ctx, id))
			witness.wantExists(t, "/ephemeral", false)
			victim.await(t, zk.StateExpired)
			victim.await(t, zk.StateHasSession)
			if victim.SessionID() == id {
				t.Error("the session lives")
			}

			if err := tt.expire(ctx, id); !errors.Is(err, zk.ErrSessionExpired) {
				t.Errorf("a session that is over: %v", err)
			}
			witness.wantExists(t, "/", true) // a bystander keeps its connection
		})
	}
}

func TestExpireSessionErrors(t *testing.T) {
	server := newServer(t)
	id := newSession(t, server.Addr()).SessionID()

	must(t, server.Freeze())
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := curatortest.ExpireSession(ctx, server.Addr(), id); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before: %v", err)
	}
	ctx, cancel = context.WithTimeout(testContext(t), 300*time.Millisecond)
	defer cancel()
	if err := curatortest.ExpireSession(ctx, server.Addr(), id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that does not answer: %v", err)
	}

	must(t, server.Kill())
	if err := server.ExpireSession(id); err == nil {
		t.Error("a server that does not run: no error")
	}
	if err := server.DropConnection(id); err == nil {
		t.Error("a server that does not run: no error")
	}
}

func TestDropConnection(t *testing.T) {
	server := newServer(t)
	victim, bystander := newSession(t, server.Addr()), newSession(t, server.Addr())
	victim.create(t, "/ephemeral", "", zk.FlagEphemeral)
	id := victim.SessionID()
	for range 3 {
		must(t, server.DropConnection(id))
		victim.await(t, zk.StateDisconnected)
		victim.await(t, zk.StateHasSession)
	}
	if victim.SessionID() != id {
		t.Error("the session is another")
	}
	bystander.wantExists(t, "/ephemeral", true)
	select {
	case ev := <-bystander.events:
		t.Errorf("a bystander has noticed: %v", ev)
	default:
	}
	must(t, server.DropConnection(12345)) // nobody's
}
