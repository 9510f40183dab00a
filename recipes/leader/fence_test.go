package leader_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// leadEach has each way to lead, with a client of the namespace "ns". The function that is returned ends it from within
// the process.
var leadEach = map[string]func(t *testing.T, client *framework.Client) (l *leader.Leadership, end func()){
	"latch": func(t *testing.T, client *framework.Client) (*leader.Leadership, func()) {
		t.Helper()
		latch, _ := startLatch(t, client, "one")
		return await(t, latch), func() { must(t, latch.Close()) }
	},
	"selector": func(t *testing.T, client *framework.Client) (*leader.Leadership, func()) {
		t.Helper()
		begun, end := make(chan *leader.Leadership, 1), make(chan struct{})
		selector := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
			begun <- leader.LeadershipOf(ctx)
			<-end
			return nil
		})
		must(t, selector.Start())
		stop := sync.OnceFunc(func() {
			close(end)
			must(t, selector.Close())
		})
		t.Cleanup(stop)
		select {
		case l := <-begun:
			return l, stop
		case <-testenv.Context(t).Done():
			t.Fatal("there is no leader")
		}
		return nil, nil
	},
}

// writes are the ways to write as the leader.
var writes = map[string]func(ctx context.Context, client *framework.Client, l *leader.Leadership) error{
	"client": func(ctx context.Context, _ *framework.Client, l *leader.Leadership) error {
		_, err := l.Client().SetData().ForPath(ctx, "/data", []byte("new"))
		return err
	},
	"transaction": func(ctx context.Context, client *framework.Client, l *leader.Leadership) error {
		_, err := l.Transaction(ctx, client.TransactionOp().SetData().ForPath("/data", []byte("new")))
		return err
	},
	"fence": func(ctx context.Context, client *framework.Client, l *leader.Leadership) error {
		op := client.TransactionOp().SetData().ForPath("/data", []byte("new"))
		_, err := client.UsingNamespace("").Transaction().ForOperations(ctx, l.Fence(), op)
		return err
	},
}

// leaderTest is a test of a leader that writes; end ends its leadership from within the process.
type leaderTest func(
	ctx context.Context, t *testing.T, client *framework.Client, l *leader.Leadership, end func(), write func() error,
)

// eachLeader runs a test for each way to lead and to write, with data to be written.
func eachLeader(t *testing.T, test leaderTest) {
	for kind, lead := range leadEach {
		for way, write := range writes {
			t.Run(kind+"/"+way, func(t *testing.T) {
				t.Parallel()
				ctx := testenv.Context(t)
				client := newClient(t, testenv.ConnectString(t), framework.WithNamespace("ns"))
				_, err := client.Create().ForPath(ctx, "/data", []byte("old"))
				must(t, err)
				l, end := lead(t, client)
				test(ctx, t, client, l, end, func() error { return write(ctx, client, l) })
			})
		}
	}
}

func wantData(ctx context.Context, t *testing.T, client *framework.Client, want string) {
	t.Helper()
	if data, err := client.GetData().ForPath(ctx, "/data"); err != nil || string(data) != want {
		t.Errorf("data is %q, %v, want %q", data, err, want)
	}
}

func TestLeaderFencedWriteSucceeds(t *testing.T) {
	eachLeader(t, func(
		ctx context.Context, t *testing.T, client *framework.Client, _ *leader.Leadership, _ func(), write func() error,
	) {
		must(t, write())
		wantData(ctx, t, client, "new")
	})
}

// TestLeaderNodeDeletedFencedWriteFails deletes the node of a leader, of which a latch hears late and a selector never.
func TestLeaderNodeDeletedFencedWriteFails(t *testing.T) {
	eachLeader(t, func(
		ctx context.Context, t *testing.T, client *framework.Client, l *leader.Leadership, _ func(), write func() error,
	) {
		must(t, client.Delete().ForPath(ctx, l.Path()))
		err := write()
		if !errors.Is(err, leader.ErrLeadershipLost) || !errors.Is(err, locks.ErrLockLost) {
			t.Errorf("error is %v", err)
		}
		wantData(ctx, t, client, "old")
	})
}

func TestLeaderEndedFencedWriteFails(t *testing.T) {
	eachLeader(t, func(
		ctx context.Context, t *testing.T, client *framework.Client, l *leader.Leadership, end func(), write func() error,
	) {
		end()
		testenv.Eventually(t, func() bool { // that of a latch goes in the background
			stat, err := client.CheckExists().ForPath(ctx, l.Path())
			must(t, err)
			return stat == nil
		}, "the node is gone")
		if err := write(); !errors.Is(err, leader.ErrLeadershipLost) {
			t.Errorf("error is %v", err)
		}
		wantData(ctx, t, client, "old")
	})
}

// TestSelectorInterruptedFencedWriteSucceeds is what its function does before it returns.
func TestSelectorInterruptedFencedWriteSucceeds(t *testing.T) {
	for name, interrupt := range map[string]func(s *leader.LeaderSelector){
		"interrupt": func(s *leader.LeaderSelector) { s.InterruptLeadership() },
		"close":     func(s *leader.LeaderSelector) { go func() { _ = s.Close() }() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testenv.Context(t)
			client := newClient(t, testenv.ConnectString(t))
			result := make(chan error, 1)
			leading := make(chan *leader.Leadership, 1)
			selector := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
				l := leader.LeadershipOf(ctx)
				leading <- l
				<-ctx.Done()
				_, err := l.Client().Create().ForPath(context.WithoutCancel(ctx), "/last", nil)
				result <- err
				return nil
			})
			must(t, selector.Start())
			l := <-leading
			interrupt(selector)
			must(t, <-result)
			must(t, selector.Close())
			if _, err := l.Client().Create().ForPath(ctx, "/late", nil); !errors.Is(err, leader.ErrLeadershipLost) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestLatchFencedWriteAfterThatOfNextLeaderFails is what tokens are compared for otherwise.
func TestLatchFencedWriteAfterThatOfNextLeaderFails(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	one, two := newClient(t, connect), newClient(t, connect)
	_, err := one.Create().ForPath(ctx, "/data", []byte("old"))
	must(t, err)
	first, _ := startLatch(t, one, "one")
	late := await(t, first)
	second, _ := startLatch(t, two, "two")
	awaitParticipants(t, second, 2)
	must(t, two.Delete().ForPath(ctx, late.Path()))
	next := await(t, second)
	_, err = next.Transaction(ctx, two.TransactionOp().SetData().ForPath("/data", []byte("next")))
	must(t, err)
	_, err = late.Transaction(ctx, one.TransactionOp().SetData().ForPath("/data", []byte("late")))
	if !errors.Is(err, leader.ErrLeadershipLost) {
		t.Errorf("error of the late one is %v", err)
	}
	wantData(ctx, t, one, "next")
}
