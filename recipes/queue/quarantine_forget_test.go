package queue

import (
	"errors"
	"testing"
	"time"
)

// TestItemInQuarantineThatIsDeletedIsForgotten has the event of the deletion come, and a list without the item.
func TestItemInQuarantineThatIsDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	const name = "queue-0000000000"
	for how, forget := range map[string]func(f *fetcher){
		"by an event": func(f *fetcher) { f.noteAll([]news{{deleted, name}}) },
		"by a list":   func(f *fetcher) { f.found(&listing{}, nil, nil) },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newFetcher(kind{}, newQueueWatch(&place{path: "/queue"}), 1, nil)
			f.quarantine.add(name, time.Now(), errors.New("corrupt"))
			forget(f)
			if n := len(f.quarantine.items); n > 0 {
				t.Errorf("%d items are in quarantine", n)
			}
		})
	}
}
