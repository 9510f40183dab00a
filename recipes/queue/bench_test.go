package queue_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// BenchmarkQueue puts items with one client and consumes them with another.
func BenchmarkQueue(b *testing.B) {
	modes := []struct {
		name string
		mode func(queue.Builder[string]) queue.Builder[string]
	}{
		{"at most once", func(b queue.Builder[string]) queue.Builder[string] { return b }},
		{"at least once", func(b queue.Builder[string]) queue.Builder[string] { return b.LockPath(lockPath) }},
	}
	for _, m := range modes {
		b.Run(m.name, func(b *testing.B) {
			ctx, connect := context.Background(), testenv.ConnectString(b)
			done := make(chan struct{})
			var got atomic.Int64
			consumer := start(b, built(m.mode(builder(b, newClient(b, connect), func(context.Context, string) error {
				if got.Add(1) == int64(b.N) {
					close(done)
				}
				return nil
			})).BuildQueue()))
			producer := start(b, built(m.mode(builder(b, newClient(b, connect), nil)).BuildQueue()))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				must(b, producer.Put(ctx, "0123456789012345678901234567890123456789"))
			}
			<-done
			b.StopTimer()
			_ = consumer
		})
	}
}
