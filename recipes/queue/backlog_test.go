package queue

import "testing"

// An event may report again what a list has shown.
func TestBacklogCountsAnItemOnce(t *testing.T) {
	t.Parallel()
	b := backlog{kind: plain}
	b.fill([]string{"queue-0000000001"}, nil)
	for _, what := range []change{created, unlocked, unlocked} {
		b.note(news{what, "queue-0000000001"})
	}
	if b.free != 1 || b.pop() == nil || b.first() != nil || b.free != 0 {
		t.Errorf("%d items may be claimed, the first is %+v", b.free, b.first())
	}
	b.note(news{locked, "queue-0000000001"})
	b.note(news{deleted, "queue-0000000001"})
	if b.free != 0 || len(b.items) != 0 {
		t.Errorf("%d items may be claimed of %d", b.free, len(b.items))
	}
}
