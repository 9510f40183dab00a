package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gocurator/curator/recipes/shared"
)

// sharedWork measures shared values.
var sharedWork = section{
	workloads: map[string]workload{sharedChange: runSharedChange},
	rows: []row{
		{
			name: "shared count, from a change to its listener", server: realServer, show: waits,
			entries: against(work(sharedChange), curator, javas),
			budget:  []bound{atMost(1, p50).of(javas)},
		},
	},
}

// runSharedChange sets a shared count, again and again. The latency is from the call until the listener has the number.
func runSharedChange(ctx context.Context, t *target, l load) (r result, err error) {
	client, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	own, ok := client.(curatorClient)
	if !ok {
		return r, fmt.Errorf("%T has no shared count", client)
	}
	path, err := t.node(ctx, "shared", make([]byte, 4))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, own.removeTree(ctx, path)) }()
	changed := make(chan time.Time, 1)
	c := shared.NewSharedCount(own.Client, path, 0)
	c.AddListener(func(context.Context, shared.VersionedValue[int]) { changed <- time.Now() })
	if err := c.Start(ctx); err != nil {
		return r, err
	}
	n := 0
	r = loop(l.duration(), []operation{func() (time.Duration, error) {
		n++
		start := time.Now()
		if err := c.SetCount(ctx, n); err != nil {
			return -1, err
		}
		at, err := receive(ctx, changed)
		return at.Sub(start), err
	}})
	return r, c.Close()
}
