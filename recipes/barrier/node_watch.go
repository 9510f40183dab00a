package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// nodeWatch watches an existing node of the barrier.
type nodeWatch struct {
	signal  *signal
	watcher *callbacks.Watcher // one for each nodeWatch: a late removal of an earlier watch must not remove this one
	path    string
	stat    zk.Stat
	read    builders.Future[[]byte]
	over    bool // there is no watch: the node did not exist, or the watch has fired
}

// watch starts to watch a node. It reads the data, as an exists would leave a watch on a node that is gone.
func (s *signal) watch(flight context.Context, path string) *nodeWatch {
	w := &nodeWatch{signal: s, watcher: callbacks.NewChanWatcher(s.events), path: path}
	get := s.client.GetData().Undecompressed().StoringStatIn(&w.stat).UsingWatcher(w.watcher)
	w.read = get.Submit(flight, path)
	return w
}

// exists waits for the reply, and reports whether the node exists.
func (w *nodeWatch) exists(ctx context.Context) (bool, error) {
	_, err := w.read.Wait(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		w.over = true
		return false, nil
	}
	return err == nil, err
}

// await waits for the next event of this node or of another one.
func (w *nodeWatch) await(ctx context.Context) (zk.EventType, error) {
	select {
	case ev := <-w.signal.events:
		if zkpath.Node(ev.Path) == zkpath.Node(w.path) {
			w.over = ev.Type == zk.EventNodeDeleted || ev.Type == zk.EventNodeDataChanged
		}
		return ev.Type, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// remove removes the watch if it has not fired.
func (w *nodeWatch) remove(ctx context.Context) {
	if !w.over {
		waitqueue.Unwatch(ctx, w.signal.client, w.watcher, w.path)
	}
}
