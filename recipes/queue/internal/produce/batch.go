package produce

import (
	"context"
	"errors"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// Limits of one request and of the requests under way: while the server handles one, the next is already there.
const (
	maxBatches    = 2
	maxBatchPuts  = 50
	maxBatchBytes = 64 << 10
	putOverhead   = 100 // bytes of a create beside its path and data
)

// batch holds the puts of one request: one node, or several in a transaction. The server handles a transaction much
// sooner than the same creates one after the other.
type batch struct {
	puts     []*Put
	answered <-chan struct{} // closed when there is an answer
	// wait waits for the answer and returns the paths of all nodes, or of none.
	wait func(ctx context.Context) (paths []string, err error)
}

// nextBatch returns the batch of the first puts, at most so many. It has at most maxBatchBytes, unless it is a single
// put.
func nextBatch(puts []*Put, path string, most int) *batch {
	n, bytes := 0, 0
	for n < min(len(puts), most) {
		x := puts[n]
		bytes += len(path) + len(x.prefix) + len(x.data) + putOverhead
		if n > 0 && bytes > maxBatchBytes {
			break
		}
		n++
	}
	return &batch{puts: puts[:n:n]}
}

func (b *batch) submit(flight context.Context, client *framework.Client, queue string) {
	flight = b.causedIn(flight)
	if b.isSingle() {
		x := b.puts[0]
		create := client.Create().WithMode(builders.PersistentSequential)
		one := create.Submit(flight, zkpath.Join(queue, x.prefix), x.data)
		b.answered = one.Done()
		b.wait = func(ctx context.Context) ([]string, error) {
			path, err := one.Wait(ctx)
			return []string{path}, err
		}
		return
	}
	create := client.TransactionOp().Create().WithMode(builders.PersistentSequential)
	ops := make([]builders.TransactionOperation, len(b.puts))
	for i, x := range b.puts {
		x.Sending.Batched(len(b.puts))
		ops[i] = create.ForPath(zkpath.Join(queue, x.prefix), x.data)
	}
	all := client.Transaction().Submit(flight, ops...)
	b.answered = all.Done()
	b.wait = func(ctx context.Context) (paths []string, err error) {
		results, err := all.Wait(ctx)
		for _, r := range results {
			paths = append(paths, r.ResultPath)
		}
		return paths, err
	}
}

// causedIn returns flight in the trace of the only put, or linked to the traces of all puts.
func (b *batch) causedIn(flight context.Context) context.Context {
	var causes []context.Context
	for _, x := range b.puts {
		if x.Cause != nil {
			causes = append(causes, x.Cause)
		}
	}
	if b.isSingle() && len(causes) == 1 {
		return telemetry.Traced(flight, causes[0])
	}
	return telemetry.WithLinks(flight, causes...)
}

func (b *batch) isSingle() bool { return len(b.puts) == 1 }

// isRefused reports whether the client refused a batch of several puts because of its size. Nothing was sent then.
func (b *batch) isRefused(ctx context.Context) bool {
	if b.isSingle() || !reply.IsClosed(b.answered) {
		return false
	}
	_, err := b.wait(ctx)
	return errors.Is(err, framework.ErrRequestTooLarge)
}
