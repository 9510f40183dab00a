package fetch

import (
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// TestItemInQuarantineThatIsDeletedIsForgotten has the event of the deletion come, and a list without the item.
func TestItemInQuarantineThatIsDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	const name = "queue-0000000000"
	for how, forget := range map[string]func(f *Fetcher){
		"by an event": func(f *Fetcher) { f.noteAll([]claim.Event{{What: claim.Deleted, Name: name}}) },
		"by a list":   func(f *Fetcher) { f.found(nil, nil, nil) },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := New(node.Kind{}, claim.NewWatch(&node.Paths{Queue: "/queue"}), 1, Handler{})
			f.quarantine.Add(name, time.Now(), errors.New("corrupt"))
			forget(f)
			if n := len(f.quarantine.Items); n > 0 {
				t.Errorf("%d items are in quarantine", n)
			}
		})
	}
}
