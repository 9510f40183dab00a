package exec_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/internal/jute"
)

// The callbacks come in the order of the answers, whatever policy the client has: that is what docs/architecture.md
// says.
func TestCallbacksComeInTheOrderOfTheAnswersWithAPolicyOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, programmed{pauses: everySecond(0)}, true)
		f.refuse("/missing", jute.CodeNoNode)
		var order []int
		done := make(chan struct{})
		const n = 100
		for i := range n {
			path := "/there"
			if i%2 == 0 {
				path = "/missing"
			}
			op := &numberedSteps{steps: *newSteps(path), deliver: func() {
				if order = append(order, i); len(order) == n {
					close(done)
				}
			}}
			op.Protocol = op
			if err := f.Go(context.Background(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		for i, got := range order {
			if got != i {
				t.Fatalf("callback %d is of operation %d", i, got)
			}
		}
	})
}
