package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/queue"
)

// fill puts an item into a queue of a kind.
func fill(t *testing.T, client *framework.Client, kind, path string) {
	t.Helper()
	ctx := t.Context()
	b := queue.NewBuilder[string](client, nil, codec.Text{}, path)
	var (
		put   func() error
		start func() error
		flush func(context.Context) error
		end   func() error
	)
	switch kind {
	case "simple-queue":
		testclient.Must(t, queue.NewSimpleDistributedQueue(client, path).Offer(ctx, []byte("x")))
		return
	case "queue":
		q, err := b.BuildQueue()
		testclient.Must(t, err)
		put = func() error { return q.Put(ctx, "x") }
		start, flush, end = q.Start, q.FlushPuts, q.Close
	case "priority-queue":
		q, err := b.BuildPriorityQueue(0)
		testclient.Must(t, err)
		put = func() error { return q.Put(ctx, "x", 7) }
		start, flush, end = q.Start, q.FlushPuts, q.Close
	case "delay-queue":
		q, err := b.BuildDelayQueue()
		testclient.Must(t, err)
		put = func() error { return q.Put(ctx, "x", time.Now()) }
		start, flush, end = q.Start, q.FlushPuts, q.Close
	case "id-queue":
		q, err := b.BuildIDQueue()
		testclient.Must(t, err)
		put = func() error { return q.Put(ctx, "x", "order-1") }
		start, flush, end = q.Start, q.FlushPuts, q.Close
	}
	testclient.Must(t, start())
	testclient.Must(t, put())
	testclient.Must(t, flush(ctx))
	testclient.Must(t, end())
}

// TestQueueRequeueBetweenKindsIsRefused has dead letters of each kind, and queues of each kind with items.
func TestQueueRequeueBetweenKindsIsRefused(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	kinds := []string{"queue", "priority-queue", "delay-queue", "id-queue", "simple-queue"}
	for _, kind := range kinds {
		fill(t, client, kind, "/of-"+kind)
	}
	for _, kind := range kinds[:4] { // simple queues have no dead letters
		for _, other := range kinds {
			dead := "/dead-" + kind + "-" + other
			fill(t, client, kind, dead)
			args := []string{"queue", "requeue", dead, "/of-" + other, "--all"}
			got := invoke(t.Context(), args, environ...)
			left := len(children(t, client, dead))
			if kind == other {
				if got.code != CodeOK || left != 0 {
					t.Errorf("%s to %s: %+v", kind, other, got)
				}
				continue
			}
			if got.code != CodeRefused || got.stdout != "" || left != 1 ||
				!strings.Contains(got.stderr, " is of a "+kind+", and /of-"+other+" is a "+other+"; --any-kind") {
				t.Errorf("%s to %s: %+v, %d left", kind, other, got, left)
			}
			if got := invoke(t.Context(), append(args, "--dry-run"), environ...); got.code != CodeRefused {
				t.Errorf("%s to %s, a dry run: %+v", kind, other, got)
			}
		}
	}
	got := invoke(t.Context(), strings.Fields("queue requeue /dead-queue-id-queue /of-id-queue --all --any-kind"),
		environ...)
	if got.code != CodeOK || len(children(t, client, "/dead-queue-id-queue")) != 0 {
		t.Errorf("--any-kind: %+v", got)
	}
	_, err := client.Create().ForPath(t.Context(), "/empty", nil)
	testclient.Must(t, err)
	got = invoke(t.Context(), strings.Fields("queue requeue /dead-queue-delay-queue /empty --all"), environ...)
	if got.code != CodeOK {
		t.Errorf("an empty queue: %+v", got)
	}
}

// TestQueueRequeueOfWhatJavaHasPutBack has letters of a priority queue without a priority in the name, and of an id
// queue with an id that looks like a time.
func TestQueueRequeueOfWhatJavaHasPutBack(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	for _, path := range []string{
		"/priority-dead/queue-000000007", "/priority-dead/queue-", "/priority/queue-000000001",
		"/id-dead/queue-|18BCFE56800|", "/id-dead/queue-|order-1|", "/id/queue-|order-2|",
	} {
		_, err := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential).
			ForPath(t.Context(), path, []byte("x"))
		testclient.Must(t, err)
	}
	for _, name := range []string{"priority", "id"} {
		args := "queue requeue /" + name + "-dead /" + name + " --all"
		got := invoke(t.Context(), strings.Fields(args), environ...)
		if n := len(children(t, client, "/"+name)); got.code != CodeOK || n != 3 {
			t.Errorf("%s: %+v, %d items", name, got, n)
		}
	}
}

// TestQueueRequeueIntoWhatIsNoQueueIsRefused has paths with the nodes of other recipes, and of none: no consumer of a
// queue looks there, and a letter below the lock path of a queue would hold an item for ever.
func TestQueueRequeueIntoWhatIsNoQueueIsRefused(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	fill(t, client, "queue", "/dead")
	for path, nodes := range map[string]map[string]builders.CreateMode{
		"/claims":     {"queue-0000000003": builders.Ephemeral},
		"/misused":    {"queue-0000000003": builders.Ephemeral, "queue-0000000001": builders.Persistent},
		"/mutex":      {"_c_7d2b1d5e-8a3f-4a55-9a39-0c9e4a1f6b21-lock-0000000004": builders.Ephemeral},
		"/election":   {"_c_7d2b1d5e-8a3f-4a55-9a39-0c9e4a1f6b21-latch-0000000004": builders.Ephemeral},
		"/semaphore":  {"locks": builders.Persistent, "leases": builders.Persistent},
		"/orders":     {"7d2b1d5e-8a3f-4a55-9a39-0c9e4a1f6b21": builders.Ephemeral},
		"/settings":   {"rate": builders.Persistent},
		"/almost":     {"queue-7": builders.Persistent},
		"/containers": {"child": builders.Container},
	} {
		for name, mode := range nodes {
			_, err := client.Create().CreatingParentsIfNeeded().WithMode(mode).ForPath(t.Context(), path+"/"+name, []byte("x"))
			testclient.Must(t, err)
		}
		args := []string{"queue", "requeue", "/dead", path, "--all"}
		for _, args := range [][]string{args, append(args, "--dry-run")} {
			got := invoke(t.Context(), args, environ...)
			if got.code != CodeRefused || got.stdout != "" || !strings.Contains(got.stderr, path) ||
				!strings.Contains(got.stderr, "--any-kind") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		if n := len(children(t, client, path)); n != len(nodes) || len(children(t, client, "/dead")) != 1 {
			t.Fatalf("%s: it has %d nodes", path, n)
		}
	}
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /settings --all --any-kind"), environ...)
	if got.code != CodeOK || len(children(t, client, "/dead")) != 0 {
		t.Errorf("--any-kind: %+v", got)
	}
}

// TestQueueRequeueIntoAQueueWithOtherNodes has a queue whose lock path is below it.
func TestQueueRequeueIntoAQueueWithOtherNodes(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	fill(t, client, "queue", "/dead")
	fill(t, client, "queue", "/jobs")
	_, err := client.Create().ForPath(t.Context(), "/jobs/locks", nil)
	testclient.Must(t, err)
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /jobs --all"), environ...)
	if got.code != CodeOK || len(children(t, client, "/jobs")) != 3 {
		t.Errorf("%+v", got)
	}
}
