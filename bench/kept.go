package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
)

// kept is the ephemeral nodes that a client keeps through sessions, and what another client observes of them.
type kept struct {
	connect  string
	client   curatorClient
	observer curatorClient
	watcher  *callbacks.Watcher
	parent   string
	paths    []string
	complete chan time.Time // when all nodes were there, again
	gone     chan time.Time // when the first of them was deleted
	requests int64          // of the client in all new sessions

	mu    sync.Mutex
	there map[string]bool // of the paths
	count int             // of those that are there
}

// keep prepares the paths of nodes, which the names say below a new parent.
func (t *target) keep(ctx context.Context, names []string) (*kept, error) {
	k := &kept{
		connect: t.connect, complete: make(chan time.Time, 1), gone: make(chan time.Time, 1),
		there: make(map[string]bool, len(names)),
	}
	for number, c := range []*curatorClient{&k.client, &k.observer} {
		own, err := t.ownClient(ctx, number)
		if err != nil {
			return nil, err
		}
		*c = own
	}
	var err error
	if k.parent, err = t.node(ctx, "kept", nil); err != nil {
		return nil, err
	}
	for _, name := range names {
		path := k.parent + "/" + name
		k.paths = append(k.paths, path)
		k.there[path] = false
	}
	k.watcher = callbacks.NewWatcher(k.observe)
	add := k.observer.Watches().Add().UsingWatcher(k.watcher)
	return k, add.ForPath(ctx, k.parent)
}

// ownClient returns the client of a number if it is one of this module.
func (t *target) ownClient(ctx context.Context, number int) (curatorClient, error) {
	some, err := t.client(ctx, number)
	if err != nil {
		return curatorClient{}, err
	}
	own, ok := some.(curatorClient)
	if !ok {
		return own, fmt.Errorf("%T has no recipes", some)
	}
	return own, nil
}

// observe notes when the first node is deleted and when the last one is there.
func (k *kept) observe(_ context.Context, ev zk.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was, ours := k.there[ev.Path]
	switch {
	case ours && !was && ev.Type == zk.EventNodeCreated:
		k.there[ev.Path] = true
		if k.count++; k.count == len(k.paths) {
			k.complete <- time.Now()
		}
	case was && ev.Type == zk.EventNodeDeleted:
		k.there[ev.Path] = false
		if k.count--; k.count == len(k.paths)-1 {
			k.gone <- time.Now()
		}
	}
}

// awaitComplete waits until all nodes are there for the first time.
func (k *kept) awaitComplete(ctx context.Context) error {
	_, err := receive(ctx, k.complete)
	return err
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
	sent, err := requestsOf(ctx, server, session)
	k.requests += sent
	return to.Sub(from), err
}

// measure ends the session again and again. The latency is from the first deleted node until all are there again.
func (k *kept) measure(ctx context.Context, l load) result {
	r := loop(l.duration(), []operation{func() (time.Duration, error) { return k.comeBack(ctx) }})
	r.Requests = k.requests
	return r
}

// close removes what is left after the client has ended its nodes.
func (k *kept) close(ctx context.Context) error {
	remove := k.observer.Watches().Remove(k.watcher)
	return errors.Join(remove.ForPath(ctx, k.parent), k.observer.removeTree(ctx, k.parent))
}
