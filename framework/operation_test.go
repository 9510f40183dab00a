package framework_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The data of an operation is the caller's again as soon as ForPath has returned, also because its context ended.
func TestOperationDataIsNotReadAfterContextEnd(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t))
	if _, err := client.Create().ForPath(testenv.Context(t), "/s", nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var ended atomic.Int64
	for g := range 4 {
		wg.Go(func() {
			data := make([]byte, 64)
			for i := range 1500 {
				limit := time.Duration(100+(i*37+g)%900) * time.Microsecond
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				if _, err := client.Create().OrSetData().ForPath(ctx, "/s", data); err != nil {
					ended.Add(1)
				}
				cancel()
				data[0]++ // the race detector reports
			}
		})
	}
	wg.Wait()
	if ended.Load() == 0 {
		t.Error("no context ended on the way")
	}
}

func TestOperationContextEndedDuringRetries(t *testing.T) {
	client := startClient(t, "127.0.0.1:1", framework.WithConnectionTimeout(time.Millisecond),
		framework.WithRetryPolicy(retry.NTimes(1_000_000, 0)))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				limit := time.Duration(i%100+g) * 30 * time.Microsecond // about half of them after the connection timeout
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				_, err := client.SetData().ForPath(ctx, "/a", []byte("x"))
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// Many operations are lost at once. Those that are tried again while the others are still being reported must not be
// lost with the same connection, again and again, until no try is left.
func TestOperationRetriesAreNotSpentOnLostConnection(t *testing.T) {
	proxy, connect := newProxy(t)
	client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(10, 10*time.Millisecond)))
	restore := proxy.Faults().BlackHole(curatortest.Both)
	const n = 30_000
	var failed atomic.Int64
	var wg sync.WaitGroup
	wg.Add(n)
	for range n {
		err := client.CheckExists().InBackground(func(_ context.Context, ev callbacks.Event) {
			defer wg.Done()
			if ev.Err != nil {
				failed.Add(1)
			}
		}).ForPath(context.Background(), "/a")
		if err != nil {
			t.Fatal(err)
		}
	}
	restore()
	proxy.Faults().CutAll()
	wg.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d failed", n)
	}
}

func TestFutureWaitTwiceReturnsSameResult(t *testing.T) {
	proxy, connect := newProxy(t)
	client := connectClient(t, connect)
	thaw := proxy.Faults().Freeze()
	defer thaw()
	future := client.Create().Submit(context.Background(), "/a", nil)
	for range 2 {
		short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if _, err := future.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	thaw()
	ctx := testenv.Context(t)
	future = client.Create().Submit(ctx, "/b", nil)
	for range 2 {
		if path, err := future.Wait(ctx); err != nil || path != "/b" {
			t.Errorf("got %q, %v", path, err)
		}
	}
}

func TestRemoveAllWatchersRemovesWatchOfServer(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t))
	ctx := testenv.Context(t)
	if _, err := client.Create().ForPath(ctx, "/watched-by-two", nil); err != nil {
		t.Fatal(err)
	}
	view := client.WatcherRemoving()
	for range 2 {
		w := callbacks.NewWatcher(func(context.Context, zk.Event) {})
		if _, err := view.GetData().UsingWatcher(w).ForPath(ctx, "/watched-by-two"); err != nil {
			t.Fatal(err)
		}
	}
	view.RemoveWatchers(ctx)
	if err := client.Sync().ForPath(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	answer, err := testenv.Server(t).FourLetterWord(ctx, "wchp")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(answer, "watched-by-two") {
		t.Errorf("watches of the server: %s", answer)
	}
}

// writeSpy counts the writes of each caller.
type writeSpy struct {
	net.Conn
	byReader *atomic.Int64
}

func (s writeSpy) Write(p []byte) (int, error) {
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	// Before the connection stands there is nothing that could wait.
	if bytes.Contains(stack, []byte("wire.(*link).Read")) && !bytes.Contains(stack, []byte("wire.(*link).probe")) {
		s.byReader.Add(1)
	}
	return s.Conn.Write(p)
}

// Both ends could wait for each other if the goroutine that reads had to wait until it can write.
func TestReaderNeverWrites(t *testing.T) {
	var byReader atomic.Int64
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return writeSpy{nc, &byReader}, nil
	}
	client := connectClient(t, testenv.ConnectString(t), framework.WithDialer(dial))
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(t), "/a/b/c", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := byReader.Load(); n != 0 {
		t.Errorf("the reader wrote %d times", n)
	}
}
