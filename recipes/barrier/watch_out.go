package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/zkpath"
)

// watchOut watches for the end of a round: for the one who goes last and, where there is nobody else to go, for ready,
// which goes with that one. So no list is needed to see that nothing is left.
type watchOut struct {
	*alarm
	paths  [2]string // of the lowest, and of ready, "" if there are others
	lowest presence
	ready  presence
	born   int64 // the transaction in which the node of the lowest was created
}

// presence is what is known of a node that is watched.
type presence int

const (
	unknown presence = iota
	there
	away
)

func (d *DistributedDoubleBarrier) watchOut(ctx, flight context.Context) *watchOut {
	w := &watchOut{alarm: newAlarm(d.client, 0)}
	w.paths[0] = zkpath.Join(d.path, d.round.lowest())
	var ready builders.Future[[]byte]
	pair := len(d.round.members) == 2 && d.round.lowest() < d.name
	if pair {
		w.paths[1] = d.ready()
		ready = d.client.GetData().UsingWatcher(w.watcher).Submit(flight, w.paths[1])
	}
	var stat zk.Stat
	_, err := d.client.GetData().StoringStatIn(&stat).UsingWatcher(w.watcher).ForPath(flight, w.paths[0])
	w.lowest, w.born = presenceOf(err), stat.Czxid
	if pair {
		_, err = ready.Wait(ctx)
		w.ready = presenceOf(err)
	}
	return w
}

func presenceOf(err error) presence {
	switch {
	case err == nil:
		return there
	case errors.Is(err, zk.ErrNoNode):
		return away
	}
	return unknown
}

// await waits until the lowest has gone or something else has happened.
func (w *watchOut) await(ctx context.Context) error {
	for w.lowest == there {
		select {
		case ev := <-w.heard:
			switch {
			case ev.Type == zk.EventNodeDeleted && ev.Path == w.paths[0]:
				w.lowest = away
			case ev.Type == zk.EventNodeDeleted:
				w.ready = away
			default:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// end takes back the watches that have not fired.
func (w *watchOut) end(ctx context.Context) {
	for i, p := range []presence{w.lowest, w.ready} {
		if p != away && w.paths[i] != "" {
			w.off(ctx, w.paths[i])
		}
	}
}

// allGone reports whether nothing is left.
func (w *watchOut) allGone() bool { return w.lowest == away && w.ready == away }
