package locks_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A session that is asked for three times as much as its server answers is busy, not lost: without a fault no hold
// ends, and the state of the connection never changes. The requests are heavy, lists of many children, which come all
// at once behind light ones.
func TestBusySessionChaos(t *testing.T) {
	ctx := testenv.Context(t)
	children := testenv.Size(2_000, 10_000, 10_000) // thirty sessions of them take nine minutes in memory
	rounds := testenv.Size(1, 1, 10)
	connect := testenv.ConnectString(t)
	maker := newClient(t, connect)
	fill(ctx, t, maker, "/many", children)
	session := 2 * time.Second
	if slow := 800 * timeOfList(ctx, t, maker); slow > session { // beside busy processes a list takes many times as long
		session = slow
	}
	// The more a list takes, the longer is all of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+time.Duration(10*rounds)*session)
	defer cancel()

	client := newClient(t, connect, framework.WithSessionTimeout(session), framework.WithTickTime(testenv.Tick))
	states := make(chan framework.ConnectionState, 100)
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) { states <- s })
	mu := locks.NewInterProcessMutex(client, "/busy/lock")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}

	var done, failed atomic.Int64
	answered := func(_ context.Context, ev callbacks.Event) {
		if done.Add(1); ev.Err != nil && failed.Add(1) == 1 {
			t.Errorf("an operation failed: %v", ev.Err)
		}
	}
	submit := func(n int) {
		for range n {
			if err := client.GetChildren().InBackground(answered).ForPath(ctx, "/many"); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What the server answers alone is measured first, behind a burst of light requests.
	for range 5000 {
		if err := client.GetData().InBackground(answered).ForPath(ctx, "/busy"); err != nil {
			t.Fatal(err)
		}
	}
	each := timeOfList(ctx, t, client)
	// Then it has three sessions' worth of work, at once.
	begin := time.Now()
	for range rounds {
		submit(int(3*session/each) + 1)
		select {
		case <-time.After(session):
		case <-hold.Context().Done():
			t.Fatalf("the hold is lost: %v", context.Cause(hold.Context()))
		}
	}
	submitted := time.Since(begin)
	if err := client.Drain(ctx); err != nil {
		t.Fatalf("%d done: %v", done.Load(), err)
	}
	t.Logf("%d lists of %d children, %v each, submitted in %v and answered in %v, in a session of %v", done.Load()-5000,
		children, each, submitted, time.Since(begin), session)
	if err := hold.Context().Err(); err != nil {
		t.Errorf("the hold is lost: %v", context.Cause(hold.Context()))
	}
	if err := hold.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	for len(states) > 0 {
		if s := <-states; s != framework.Connected {
			t.Errorf("state %v", s)
		}
	}
}

// fill creates n children below path.
func fill(ctx context.Context, t *testing.T, client *framework.Client, path string, n int) {
	t.Helper()
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, path, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create().ForPath(ctx, "/busy", nil); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := client.Create().InBackground(func(_ context.Context, ev callbacks.Event) {
			if ev.Err != nil {
				t.Error(ev.Err)
			}
		}).ForPath(ctx, fmt.Sprintf("%s/child-%08d", path, i), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

// timeOfList returns how long a list takes, of many that come at once.
func timeOfList(ctx context.Context, t *testing.T, client *framework.Client) (each time.Duration) {
	t.Helper()
	const sample = 200
	for range 3 { // a server is faster when it is warm
		begin := time.Now()
		for range sample {
			err := client.GetChildren().InBackground(func(_ context.Context, ev callbacks.Event) {
				if ev.Err != nil {
					t.Error(ev.Err)
				}
			}).ForPath(ctx, "/many")
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		each = time.Since(begin) / sample
	}
	return each
}
