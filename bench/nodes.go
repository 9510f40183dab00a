package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/recipes/nodes"
)

// nodeWork measures nodes that a client keeps: the window is their number.
var nodeWork = section{
	workloads: map[string]workload{nodesReturn: runNodesReturn},
	rows: []row{{
		// With one server in its connect string Java would wait a second longer before it connects again.
		name: "1000 persistent nodes, back after the end of the session", server: realServer, servers: 3, stretch: 4,
		show:    waits,
		entries: against(work(nodesReturn), curator, javas),
		budget:  []bound{atMost(0.2, p50).of(javas)},
	}},
}

// runNodesReturn keeps nodes with one client and ends its session, again and again. The latency is from the first
// deleted node until all nodes are there again. Another client observes both.
func runNodesReturn(ctx context.Context, t *target, l load) (r result, err error) {
	k, err := t.keep(ctx, l.Window)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.close(ctx)) }()
	data := make([]byte, l.Payload)
	for _, path := range k.paths {
		n := nodes.NewPersistentNode(k.client.Client, path, builders.Ephemeral, data)
		if err := n.Start(); err != nil {
			return r, err
		}
		k.nodes = append(k.nodes, n)
	}
	for _, n := range k.nodes {
		if err := n.WaitForInitialCreate(ctx); err != nil {
			return r, err
		}
	}
	if _, err := receive(ctx, k.complete); err != nil {
		return r, err
	}
	return loop(l.duration(), []operation{func() (time.Duration, error) { return k.comeBack(ctx) }}), nil
}

// kept is the nodes of a run, and what another client observes of them.
type kept struct {
	connect  string
	client   curatorClient
	observer curatorClient
	watcher  *callbacks.Watcher
	parent   string
	paths    []string
	nodes    []*nodes.PersistentNode
	complete chan time.Time // when all nodes were there, again
	gone     chan time.Time // when the first of them was deleted

	mu    sync.Mutex
	there map[string]bool
}

// keep prepares the paths of a number of nodes.
func (t *target) keep(ctx context.Context, count int) (*kept, error) {
	k := &kept{connect: t.connect, complete: make(chan time.Time, 1), gone: make(chan time.Time, 1)}
	for number, c := range []*curatorClient{&k.client, &k.observer} {
		some, err := t.client(ctx, number)
		if err != nil {
			return nil, err
		}
		own, ok := some.(curatorClient)
		if !ok {
			return nil, fmt.Errorf("%T keeps no nodes", some)
		}
		*c = own
	}
	var err error
	if k.parent, err = t.node(ctx, "nodes", nil); err != nil {
		return nil, err
	}
	k.there = make(map[string]bool, count)
	for i := range count {
		k.paths = append(k.paths, k.parent+"/node-"+strconv.Itoa(i))
	}
	k.watcher = callbacks.NewWatcher(k.observe)
	add := k.observer.Watches().Add().UsingWatcher(k.watcher)
	return k, add.ForPath(ctx, k.parent)
}

// observe notes when the first node is deleted and when the last one is there.
func (k *kept) observe(_ context.Context, ev zk.Event) {
	if path.Dir(ev.Path) != k.parent {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	wasComplete := len(k.there) == len(k.paths)
	switch ev.Type {
	case zk.EventNodeCreated:
		k.there[ev.Path] = true
	case zk.EventNodeDeleted:
		delete(k.there, ev.Path)
	}
	switch isComplete := len(k.there) == len(k.paths); {
	case isComplete && !wasComplete:
		k.complete <- time.Now()
	case !isComplete && wasComplete:
		k.gone <- time.Now()
	}
}

// comeBack ends the session of the nodes and waits until all of them belong to another one.
func (k *kept) comeBack(ctx context.Context) (time.Duration, error) {
	server, _, _ := strings.Cut(k.connect, "/")
	server, _, _ = strings.Cut(server, ",")
	if err := curatortest.ExpireSession(ctx, server, k.client.SessionID()); err != nil {
		return -1, err
	}
	from, err := receive(ctx, k.gone)
	if err != nil {
		return -1, err
	}
	to, err := receive(ctx, k.complete)
	if err != nil {
		return -1, err
	}
	session := k.client.SessionID()
	for _, path := range k.paths {
		stat, err := k.observer.CheckExists().ForPath(ctx, path)
		if err != nil {
			return -1, err
		}
		if stat == nil || stat.EphemeralOwner != session {
			return -1, fmt.Errorf("%s is not of session %#x: %+v", path, session, stat)
		}
	}
	return to.Sub(from), nil
}

// close ends the nodes.
func (k *kept) close(ctx context.Context) error {
	errs := make([]error, len(k.nodes), len(k.nodes)+2)
	var wg sync.WaitGroup
	for i, n := range k.nodes {
		wg.Go(func() { errs[i] = n.Close(ctx) })
	}
	wg.Wait()
	remove := k.observer.Watches().Remove(k.watcher)
	errs = append(errs, remove.ForPath(ctx, k.parent), k.observer.removeTree(ctx, k.parent))
	return errors.Join(errs...)
}
