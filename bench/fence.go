package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// The contenders of the row of fenced writes. Both are this library.
const (
	fenced   = "with a fence"
	unfenced = "without"
)

// fenceWork measures writes with a lock's fence.
var fenceWork = section{
	workloads: map[string]workload{setDataFenced: runSetDataFenced, setDataSync: runSetData},
	rows: []row{{
		name: "setData of a lock's holder, one goroutine", server: realServer, show: latency, often: 4,
		entries: []entry{
			{name: fenced, library: curator, load: work(setDataFenced)},
			{name: unfenced, library: curator, load: work(setDataSync)},
		},
		budget: []bound{atMost(1.15, p50).of(unfenced)},
	}},
}

// runSetData writes one node as the holder of a lock, without the fence of the lock.
func runSetData(ctx context.Context, t *target, l load) (result, error) {
	return t.writeAsHolder(ctx, l, func(c *framework.Client, _ *locks.Hold) *framework.Client { return c })
}

// runSetDataFenced is runSetData with the fence.
func runSetDataFenced(ctx context.Context, t *target, l load) (result, error) {
	return t.writeAsHolder(ctx, l, func(_ *framework.Client, h *locks.Hold) *framework.Client { return h.Client() })
}

// writeAsHolder writes one node in each thread. All threads use one client, which holds a lock. with returns the view
// of the client that writes.
func (t *target) writeAsHolder(
	ctx context.Context, l load, with func(c *framework.Client, h *locks.Hold) *framework.Client,
) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	own, ok := c.(curatorClient)
	if !ok {
		return r, fmt.Errorf("%T has no fence", c)
	}
	path, err := t.node(ctx, "lock", nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.removeTree(ctx, path)) }()
	hold, err := locks.NewInterProcessMutex(own.Client, path).Acquire(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	writer := with(own.Client, hold)
	return t.withData(ctx, l, func(_ client, node string) result {
		data := make([]byte, l.Payload)
		operations := make([]operation, l.Threads)
		for i := range operations {
			operations[i] = timed(func() error {
				_, err := writer.SetData().ForPath(ctx, node, data)
				return err
			})
		}
		return loop(l.duration(), operations)
	})
}
