package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
)

const (
	queuePath = "/queue"
	lockPath  = "/queue-locks"
)

func newClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client, err := framework.New(connect, append([]framework.Option{
		framework.WithSessionTimeout(20 * time.Second),
		framework.WithConnectionTimeout(time.Minute), // a busy machine takes its time to connect,
		framework.WithMaxCloseWait(20 * time.Second), // and to come to an end
		framework.WithRetryPolicy(retry.NTimes(5, 20*time.Millisecond)),
		framework.WithEnsembleTracker(false),
	}, opts...)...)
	must(tb, err)
	must(tb, client.Start())
	tb.Cleanup(func() { must(tb, client.Close()) })
	return client
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// newProxy returns a proxy to the server, and a connect string through it.
func newProxy(tb testing.TB, chroot string) (*curatortest.Proxy, string) {
	tb.Helper()
	proxy := curatortest.NewProxyT(tb, testenv.Addr(tb))
	return proxy, proxy.Addr() + chroot
}

// builder returns a builder of queues of strings; without a consumer if consumer is nil. What goes wrong in the
// background fails the test, if it is not told to somebody else.
func builder(tb testing.TB, client queue.Client, consumer queue.Consumer[string]) queue.Builder[string] {
	tb.Helper()
	return queue.NewBuilder(client, consumer, queue.String{}, queuePath).
		OnError(func(_ context.Context, err error) { tb.Errorf("in the background: %v", err) })
}

type life interface {
	Start() error
	Close() error
}

// built returns what a Build function returned, which knows no reason to fail.
func built[Q life](q Q, err error) Q {
	if err != nil {
		panic(err)
	}
	return q
}

// start starts a queue.
func start[Q life](tb testing.TB, q Q) Q {
	tb.Helper()
	must(tb, q.Start())
	tb.Cleanup(func() {
		if err := q.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return q
}

// basket keeps what consumers are given.
type basket struct {
	tb testing.TB

	mu    sync.Mutex
	items []string
	more  chan struct{}
}

func newBasket(tb testing.TB) *basket {
	tb.Helper()
	return &basket{tb: tb, more: make(chan struct{})}
}

func (b *basket) consume(_ context.Context, item string) error {
	b.add(item)
	return nil
}

func (b *basket) add(item string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, item)
	close(b.more)
	b.more = make(chan struct{})
}

// await waits until there are n items, and returns them in the order in which they came.
func (b *basket) await(n int) []string {
	b.tb.Helper()
	for {
		b.mu.Lock()
		items, more := slices.Clone(b.items), b.more
		b.mu.Unlock()
		if len(items) >= n {
			return items
		}
		select {
		case <-more:
		case <-testenv.Context(b.tb).Done():
			b.tb.Fatalf("got %d of %d items: %v", len(items), n, tail(items))
		}
	}
}

func tail(items []string) []string { return items[max(0, len(items)-10):] }

// numbered returns n items.
func numbered(n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("item %d", i)
	}
	return items
}

// children returns the names of nodes below a path, in order; none if there is no such path.
func children(tb testing.TB, connect, path string) []string {
	tb.Helper()
	_, chroot, _ := strings.Cut(connect, "/")
	if chroot != "" {
		path = "/" + chroot + path
	}
	names, _, err := testenv.Raw(tb).Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatalf("children of %s: %v", path, err)
	}
	slices.Sort(names)
	return names
}

// awaitNothing waits until neither items nor locks are left.
func awaitNothing(tb testing.TB, connect string) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		return len(children(tb, connect, queuePath))+len(children(tb, connect, lockPath)) == 0
	}, "nothing is left")
}
