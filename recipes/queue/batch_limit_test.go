package queue

import (
	"slices"
	"testing"

	"github.com/gocurator/curator/framework"
)

// A server that refuses large requests closes the connection for each: the limit goes beyond it ever more seldom.
func TestLimitOfBatchesGoesSeldomBeyondThatOfTheServer(t *testing.T) {
	t.Parallel()
	limit, refused := newBatchLimit(), 0
	for range 100_000 {
		if limit.bytes > 20<<10 {
			refused++
			limit.shrink(limit.bytes)
		} else {
			limit.grow()
		}
	}
	if refused > 20 {
		t.Errorf("%d batches were too large for the server", refused)
	}
}

func TestPutThatWasLostAloneIsSentAloneAgain(t *testing.T) {
	t.Parallel()
	lost, other := newPendingPut("queue-", nil), newPendingPut("queue-", nil)
	lost.losses = 1
	for name, puts := range map[string][]*PendingPut{
		"as the first":   {lost, other},
		"behind another": {other, lost},
	} {
		if b := nextBatch(puts, "/queue", maxBatchBytes); !slices.Equal(b.puts, puts[:1]) {
			t.Errorf("%s: %d puts in a batch", name, len(b.puts))
		}
	}
}

func TestPutThatWasNotSentIsNoCauseOfALostConnection(t *testing.T) {
	t.Parallel()
	p, x := newProducer(nil, "/queue", 1, true, nil), newPendingPut("queue-", make([]byte, 2*suspectSize))
	puts := []*PendingPut{x}
	p.slots <- struct{}{} // of the put
	sent := []*batch{nextBatch(puts, "/queue", maxBatchBytes)}
	for range 2 * maxLosses {
		if left := p.adjustLimits(sent, puts, framework.ErrNotSent); !slices.Equal(left, puts) {
			t.Fatal("a put that was never sent has failed")
		}
	}
	if p.limit.bytes != maxBatchBytes {
		t.Errorf("the limit is %d bytes", p.limit.bytes)
	}
}
