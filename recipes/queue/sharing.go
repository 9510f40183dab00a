package queue

import (
	"time"

	"github.com/gocurator/curator/builders"
)

// mostSharingPause is the longest pause between two looks whether others are idle.
const mostSharingPause = 10 * time.Second

// shareOut gives back what is claimed while an item takes long: others may be idle.
func (f *fetcher) shareOut() {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	default: // the next item is asked for
		return
	}
	if rest := slowItem - time.Since(f.prefetch.takenAt); rest > 0 || !f.isOpen {
		return
	}
	for len(f.claims) > 0 {
		if f.takeAnswer(f.life) != nil || f.life.Err() != nil {
			break // which the next one who asks finds out about
		}
	}
	if len(f.ready) == 0 || f.life.Err() != nil {
		return
	}
	if !f.place.hasLocks() && !f.isEmpty() { // others have enough to do
		f.looks++
		f.slow.Reset(doubled(slowItem, mostSharingPause, f.looks))
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

// isEmpty reports whether nothing is left in the queue.
func (f *fetcher) isEmpty() bool {
	stat, err := f.place.client.CheckExists().ForPath(builders.InOneFlight(f.life), f.place.path)
	return err == nil && stat != nil && stat.NumChildren == 0
}
