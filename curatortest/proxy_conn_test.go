package curatortest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

// A plain slice is the model of the queue of requests.
func TestPendingRequests(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l link
	var model []int32
	for step := range 200_000 {
		if rnd.IntN(100) < 50 || len(model) == 0 {
			xid := int32(step)
			if rnd.IntN(10) == 0 {
				xid = jute.XidPing
			}
			l.push(request{message: message{xid: xid}})
			model = append(model, xid)
			continue
		}
		i := 0
		if rnd.IntN(10) == 0 {
			i = rnd.IntN(len(model))
		}
		xid := model[i]
		i = slices.Index(model, xid)
		model = slices.Delete(model, i, i+1)
		if r, ok := l.pop(xid); !ok || r.xid != xid {
			t.Fatalf("step %d: got %d, %v; want %d", step, r.xid, ok, xid)
		}
		if n := len(l.pending) - l.head; n != len(model) {
			t.Fatalf("step %d: %d waiting, want %d", step, n, len(model))
		}
	}
	if _, ok := l.pop(-99); ok {
		t.Error("found what was never pushed")
	}
}
