package queue

import (
	"testing"
	"time"
)

// TestShareOutLeavesItemsAlone has the timer end when it is too late.
func TestShareOutLeavesItemsAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		isOpen, isRunning bool
		takenAt           time.Time
	}{
		"while next is running":              {isOpen: true, isRunning: true},
		"behind an item that was just taken": {isOpen: true, takenAt: time.Now().Add(time.Hour)},
		"of a drained fetcher":               {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetcher(kind{}, newQueueWatch(&place{path: "/queue", lockPath: "/locks"}), 1, nil)
			f.start(t.Context(), t.Context())
			f.isOpen, f.prefetch.takenAt = tt.isOpen, tt.takenAt
			f.ready = []*message{{}}
			if tt.isRunning {
				f.turn <- struct{}{}
			}
			f.shareOut()
			if len(f.ready) != 1 {
				t.Error("items are shared out")
			}
		})
	}
}
