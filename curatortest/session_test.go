package curatortest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

func TestExpireSession(t *testing.T) {
	t.Parallel()
	server := testenv.NewServer(t)
	type way struct {
		name   string
		expire func(ctx context.Context, id int64) error
	}
	ways := []way{
		{"ExpireSession", func(ctx context.Context, id int64) error {
			return curatortest.ExpireSession(ctx, server.Addr(), id)
		}},
		{"KillSession", func(ctx context.Context, id int64) error {
			return curatortest.KillSession(ctx, server.Addr(), id)
		}},
		{"method ExpireSession", func(_ context.Context, id int64) error { return server.ExpireSession(id) }},
	}
	if apache, ok := server.(*curatortest.RealServer); ok {
		ways = append(ways,
			way{"method KillSession", func(_ context.Context, id int64) error { return apache.KillSession(id) }})
	}
	for _, tt := range ways {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			victim, witness := newSession(t, server.Addr()), newSession(t, server.Addr())
			node := fmt.Sprintf("/ephemeral-%x", victim.SessionID())
			victim.create(t, node, "", zk.FlagEphemeral)
			id := victim.SessionID()

			must(t, tt.expire(ctx, id))
			witness.wantExists(t, node, false)
			victim.await(t, zk.StateExpired)
			victim.await(t, zk.StateHasSession)
			if victim.SessionID() == id {
				t.Error("the session lives")
			}

			if err := tt.expire(ctx, id); !errors.Is(err, zk.ErrSessionExpired) {
				t.Errorf("a session that is over: %v", err)
			}
			witness.wantUndisturbed(t)
		})
	}
}

func TestExpireSessionErrors(t *testing.T) {
	t.Parallel()
	server := testenv.NewServer(t)
	id := newSession(t, server.Addr()).SessionID()

	must(t, server.Freeze())
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	if err := curatortest.ExpireSession(ctx, server.Addr(), id); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before: %v", err)
	}
	ctx, cancel = context.WithTimeout(testenv.Context(t), 300*time.Millisecond)
	defer cancel()
	if err := curatortest.ExpireSession(ctx, server.Addr(), id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that does not answer: %v", err)
	}

	ctx, cancel = context.WithTimeout(testenv.Context(t), 300*time.Millisecond)
	defer cancel()
	if err := curatortest.DropConnection(ctx, server.Addr(), id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection to drop on a server that does not answer: %v", err)
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
	t.Parallel()
	server := testenv.NewServer(t)
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
	bystander.wantUndisturbed(t)
	must(t, server.DropConnection(12345)) // unknown
}

// The client comes for its session before there is an answer, and the server closes the connection that asked for it.
func TestDropConnectionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	server := testenv.NewServer(t)
	victim := newSession(t, server.Addr())
	p := newProxy(t, server.Addr())
	lost := p.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutAfter, Count: 1})
	must(t, curatortest.DropConnection(testenv.Context(t), p.Addr(), victim.SessionID()))
	wait(t, lost)
	victim.await(t, zk.StateDisconnected)
	victim.await(t, zk.StateHasSession)
}

// Only a request to end the session makes its absence a success: one that never was is none, however often the
// connection was lost before the server said so.
func TestExpireSessionAfterLostConnection(t *testing.T) {
	t.Parallel()
	server := testenv.NewServer(t)
	for _, tt := range []struct {
		name string
		rule curatortest.Rule
		id   func(t *testing.T) int64
		want error
	}{
		{
			name: "unknown session, handshake lost",
			rule: curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutBefore, Count: 1},
			id:   func(*testing.T) int64 { return 12345 },
			want: zk.ErrSessionExpired,
		},
		{
			name: "answer lost",
			rule: curatortest.Rule{Ops: []string{"closeSession"}, Action: curatortest.CutAfter, Count: 1},
			id:   func(t *testing.T) int64 { t.Helper(); return newSession(t, server.Addr()).SessionID() },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProxy(t, server.Addr())
			lost := p.Faults().Add(tt.rule)
			err := curatortest.ExpireSession(testenv.Context(t), p.Addr(), tt.id(t))
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			wait(t, lost)
		})
	}
}
