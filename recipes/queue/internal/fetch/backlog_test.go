package fetch

import (
	"testing"

	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// An event may report again what a list has shown.
func TestBacklogCountsAnItemOnce(t *testing.T) {
	t.Parallel()
	b := backlog{kind: node.Plain}
	b.fill([]string{"queue-0000000001"}, nil)
	for _, what := range []claim.Change{claim.Created, claim.Unlocked, claim.Unlocked} {
		b.note(claim.Event{What: what, Name: "queue-0000000001"})
	}
	if b.free != 1 || b.pop() == nil || b.first() != nil || b.free != 0 {
		t.Errorf("%d items may be claimed, the first is %+v", b.free, b.first())
	}
	b.note(claim.Event{What: claim.Locked, Name: "queue-0000000001"})
	b.note(claim.Event{What: claim.Deleted, Name: "queue-0000000001"})
	if b.free != 0 || len(b.items) != 0 {
		t.Errorf("%d items may be claimed of %d", b.free, len(b.items))
	}
}
