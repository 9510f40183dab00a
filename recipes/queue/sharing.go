package queue

import (
	"time"

	"github.com/gocurator/curator/builders"
)

// maxSharingPause is the longest pause between two checks for idle consumers.
const maxSharingPause = 10 * time.Second

// shareOut returns claimed items while an item takes long, because other consumers may be idle.
func (f *fetcher) shareOut() {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	default: // next is running
		return
	}
	if rest := slowItem - time.Since(f.prefetch.takenAt); rest > 0 || !f.isOpen {
		return
	}
	for len(f.claims) > 0 {
		if f.takeAnswer(f.life) != nil || f.life.Err() != nil {
			break // the next call of next reports that
		}
	}
	if !f.place.hasLocks() && !f.isEmpty() { // other consumers have enough to do
		f.shareChecks++
		f.slow.Reset(doubled(slowItem, maxSharingPause, f.shareChecks))
		return
	}
	shared := f.ready
	f.ready = nil
	for _, m := range shared {
		if m.lock != nil {
			f.handler.release(m)
			f.backlog.add(f.backlog.items[m.name.whole])
		} else {
			f.handler.putAgainInBackground(m)
		}
	}
}

// isEmpty reports whether the queue is empty.
func (f *fetcher) isEmpty() bool {
	stat, _ := f.place.client.CheckExists().ForPath(builders.Pipelined(f.life), f.place.path)
	return stat != nil && stat.NumChildren == 0
}
