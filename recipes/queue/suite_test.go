package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/queue"
)

const (
	queuePath = "/queue"
	lockPath  = "/queue-locks"
)

var (
	newClient = testclient.Start
	newProxy  = testclient.Proxy
	must      = testclient.Must
)

// builder returns a builder of queues of strings; without a consumer if consumer is nil. What goes wrong in the
// background fails the test, unless another handler gets it.
func builder(tb testing.TB, client *framework.Client, consumer queue.Consumer[string]) queue.Builder[string] {
	tb.Helper()
	return queue.NewBuilder(client, consumer, codec.Text{}, queuePath).
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
	return testenv.Children(tb, path)
}

// awaitNothing waits until neither items nor locks are left.
func awaitNothing(tb testing.TB, connect string) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		return len(children(tb, connect, queuePath))+len(children(tb, connect, lockPath)) == 0
	}, "nothing is left")
}
