package main

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/nodes"
)

// nodeWork measures nodes that a client keeps: the window is their number.
var nodeWork = section{
	workloads: map[string]workload{nodesReturn: runNodesReturn},
	rows: []row{{
		// With one server in its connect string Java would wait a second longer before it connects again.
		name: "1000 persistent nodes, back after the end of the session", server: realServer, servers: 3, stretch: 4,
		show:    []metric{p50, p99, requests},
		entries: against(work(nodesReturn), curator, javas),
		budget:  []bound{atMost(0.2, p50).of(javas)},
	}},
}

// runNodesReturn keeps nodes with one client and ends its session, again and again. The latency is from the first
// deleted node until all nodes are there again. Another client observes both.
func runNodesReturn(ctx context.Context, t *target, l load) (r result, err error) {
	var names []string
	for i := range l.Window {
		names = append(names, "node-"+strconv.Itoa(i))
	}
	k, err := t.keep(ctx, names)
	if err != nil {
		return r, err
	}
	var all []*nodes.PersistentNode
	defer func() { err = errors.Join(err, closeNodes(ctx, all), k.close(ctx)) }()
	data := make([]byte, l.Payload)
	for _, path := range k.paths {
		n := nodes.NewPersistentNode(k.client.Client, path, builders.Ephemeral, data)
		if err := n.Start(); err != nil {
			return r, err
		}
		all = append(all, n)
	}
	for _, n := range all {
		if err := n.WaitForInitialCreate(ctx); err != nil {
			return r, err
		}
	}
	if err := k.awaitComplete(ctx); err != nil {
		return r, err
	}
	return k.measure(ctx, l), nil
}

// closeNodes ends nodes, all at once.
func closeNodes(ctx context.Context, all []*nodes.PersistentNode) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() { errs[i] = n.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
