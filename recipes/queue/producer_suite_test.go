package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// itemsOf returns the items of all nodes of a queue, in their order, and leaves them there.
func itemsOf(tb testing.TB, client *framework.Client) (items []string) {
	tb.Helper()
	ctx := testenv.Context(tb)
	names, err := client.GetChildren().ForPath(ctx, queuePath)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	must(tb, err)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	for _, name := range names {
		data, err := client.GetData().ForPath(ctx, queuePath+"/"+name)
		must(tb, err)
		parts, _, err := node.Decode(data)
		must(tb, err)
		for _, item := range parts {
			items = append(items, string(item))
		}
	}
	return items
}

// countOf returns how often an operation was sent.
func countOf(faults *curatortest.Faults, op string) int {
	return requests(faults)[op]
}

// putItems puts items and does not wait for them.
func putItems(tb testing.TB, q *queue.DistributedQueue[string], items ...string) {
	tb.Helper()
	for _, item := range items {
		must(tb, q.Put(testenv.Context(tb), item))
	}
}

// deletePath deletes a node and all below it.
func deletePath(tb testing.TB, client *framework.Client, path string) {
	tb.Helper()
	must(tb, client.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(testenv.Context(tb), path))
}

// outcomes collects what a put listener is called with.
func outcomes(q *queue.DistributedQueue[string]) chan queue.PutEvent[string] {
	events := make(chan queue.PutEvent[string], 1000)
	q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { events <- ev })
	return events
}
