package queue

import (
	"context"

	"github.com/gocurator/curator/builders"
)

// view is what is known of a queue: the names of its items, in order, from a list or kept by a watch.
type view struct {
	place *place
	watch *queueWatch

	watching    bool // all items and locks are watched
	unsupported bool // the server has no such watches
	stale       bool // the list is not reliable
	lastEmpty   bool // the last list had nothing to take
	backlog     backlog
	misses      int // items in a row that others have taken first
	yielding    yielding
}

func newView(w *queueWatch, k kind) view {
	v := view{place: w.place, watch: w, stale: true, backlog: backlog{kind: k}}
	v.backlog.clear()
	return v
}

// note applies an event.
func (v *view) note(n news) {
	if v.backlog.note(n) {
		v.yielding.lost()
	}
}

// addWatch watches all items and locks if the server has such watches.
func (v *view) addWatch(flight context.Context) error {
	if v.unsupported {
		return nil
	}
	err := v.watch.all(flight)
	switch {
	case err == nil:
		v.watching = true
	case isRefusal(err):
		v.watching, v.unsupported = false, true
		return nil
	}
	return err
}

// children returns the request for a list, which is watched where no other watch is.
func (v *view) children(watched bool) builders.GetChildren {
	list := v.place.client.GetChildren()
	if watched {
		return list.UsingWatcher(v.watch.watcher)
	}
	return list
}

// isUsedUp reports whether a new list is cheaper than continuing with one that has so many names left, after so many
// misses in a row.
func (v *view) isUsedUp() bool { return v.misses > 16+v.backlog.free/32 }
