package framework_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/testenv"
)

// An operation of the background takes the memory of one before it: what is left is what the callback may keep, and the
// builder. It counts what the whole process allocates, so it runs alone, with a server that allocates nothing.
func TestBackgroundOperationAllocations(t *testing.T) {
	server, err := nullserver.New()
	must(t, err)
	defer server.Close()
	client := startClient(t, server.Addr())
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	ctx := context.Background() // one that ends costs another allocation
	ignore := func(context.Context, callbacks.Event) {}
	data := []byte("data")
	operations := map[string]func() error{
		"create":      func() error { return client.Create().InBackground(ignore).ForPath(ctx, "/n", data) },
		"getData":     func() error { return client.GetData().InBackground(ignore).ForPath(ctx, "/n") },
		"setData":     func() error { return client.SetData().InBackground(ignore).ForPath(ctx, "/n", data) },
		"exists":      func() error { return client.CheckExists().InBackground(ignore).ForPath(ctx, "/n") },
		"getChildren": func() error { return client.GetChildren().InBackground(ignore).ForPath(ctx, "/n") },
		"delete":      func() error { return client.Delete().InBackground(ignore).ForPath(ctx, "/n") },
	}
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			const n, window = 20_000, 100
			least := runtime.MemStats{Mallocs: 1 << 60, TotalAlloc: 1 << 60}
			for range 3 { // a garbage collection empties the pool
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for i := range n {
					must(t, run())
					if i%window == 0 {
						must(t, client.Drain(ctx))
					}
				}
				must(t, client.Drain(ctx))
				runtime.ReadMemStats(&after)
				least.Mallocs = min(least.Mallocs, after.Mallocs-before.Mallocs)
				least.TotalAlloc = min(least.TotalAlloc, after.TotalAlloc-before.TotalAlloc)
			}
			t.Logf("%.2f allocations, %d bytes", float64(least.Mallocs)/n, least.TotalAlloc/n)
			allocations, bytes := 3.5, uint64(500)
			if underRace {
				allocations, bytes = 6, 1000
			}
			if limit := allocations; float64(least.Mallocs)/n > limit {
				t.Errorf("%.2f allocations, at most %v wanted", float64(least.Mallocs)/n, limit)
			}
			if limit := bytes; least.TotalAlloc/n > limit {
				t.Errorf("%d bytes, at most %d wanted", least.TotalAlloc/n, limit)
			}
		})
	}
}
