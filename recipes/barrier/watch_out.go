package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

// watchOut watches for the one who goes last.
type watchOut struct {
	*alarm
	path   string // of the lowest
	lowest presence
	born   int64 // the transaction in which the node of the lowest was created
	over   bool  // the lowest has gone, and nobody is left of those whom ready found
}

// presence is what is known of a node that is watched.
type presence int

const (
	unknown presence = iota
	there
	away
)

func (d *DistributedDoubleBarrier) watchOut(ctx context.Context) *watchOut {
	w := &watchOut{alarm: newAlarm(d.client, 0), path: zkpath.Join(d.path, d.round.lowest())}
	var stat zk.Stat
	_, err := d.client.GetData().StoringStatIn(&stat).UsingWatcher(w.watcher).ForPath(ctx, w.path)
	w.born = stat.Czxid
	switch {
	case err == nil:
		w.lowest = there
	case errors.Is(err, zk.ErrNoNode):
		w.lowest = away
	}
	return w
}

// await waits until the lowest has gone or something else has happened. Its data changes when it goes as it should: see
// [DistributedDoubleBarrier.end].
func (w *watchOut) await(ctx context.Context) error {
	select {
	case ev := <-w.heard:
		w.over = ev.Type == zk.EventNodeDataChanged
		if w.over || ev.Type == zk.EventNodeDeleted {
			w.lowest = away
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end takes back the watch, if it has not fired.
func (w *watchOut) end(ctx context.Context) {
	if w.lowest != away {
		w.off(ctx, w.path)
	}
}
