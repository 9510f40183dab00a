package locks

import (
	"bytes"
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// revokeMessage is what the data of a holder's node is set to when somebody asks for the lock.
var revokeMessage = []byte("__REVOKE__")

// Revoke asks the holder of a node, one of the paths of ParticipantNodes, to release the lock. Whether it does is up to
// it: see [InterProcessMutex.MakeRevocable]. In Java: Revoker.attemptRevoke.
func Revoke(ctx context.Context, client Client, path string) error {
	_, err := client.SetData().Uncompressed().ForPath(ctx, path, revokeMessage)
	return err
}

// MakeRevocable has requested called when somebody asks for the lock with [Revoke], once for each hold, on the
// dispatcher of the client; it may release the hold. It counts for what is acquired from now on, until it is called
// again; nil turns it off. The nodes of a revocable lock have no data. In Java: makeRevocable, which has to be called
// again after each release.
func (m *InterProcessMutex) MakeRevocable(requested func(hold *Hold)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoked = requested
}

// revocation watches a node of ours for a request to release.
type revocation struct {
	ctx       context.Context // the values of Acquire's
	client    lineup.Client
	path      string
	watcher   *callbacks.Watcher
	requested func()

	mu   sync.Mutex
	done bool
}

func (r *revocation) start(requested func()) {
	r.requested = requested
	r.watcher = callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		if ev.Type == zk.EventNodeDataChanged {
			r.read()
		}
	})
	r.read()
}

// read reads the node and watches it again.
func (r *revocation) read() {
	if r.isDone() {
		return
	}
	_ = r.client.GetData().Undecompressed().UsingWatcher(r.watcher).InBackground(r.answered).
		ForPath(r.ctx, r.path)
}

func (r *revocation) answered(_ context.Context, ev callbacks.Event) {
	switch {
	case r.isDone():
		r.unwatch() // set while stop was under way
	case ev.Err == nil && bytes.Equal(ev.Data, revokeMessage):
		r.stop()
		r.requested()
	case lineup.IsOutage(ev.Err): // given up: the request may come while nobody watches
		r.read()
	}
}

func (r *revocation) isDone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

func (r *revocation) stop() {
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	if r.watcher != nil {
		r.unwatch()
	}
}

func (r *revocation) unwatch() {
	_ = r.client.Watches().Remove(r.watcher).Guaranteed().Quietly().InBackground(lineup.Ignore).
		ForPath(r.ctx, r.path)
}
