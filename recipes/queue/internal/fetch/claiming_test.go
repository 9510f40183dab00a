package fetch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// TestItemThatGoesBeforeTheReadyOnesIsRead makes fetchers that have some items ready, read or left, of any size, and no
// claim under way: either an item is delivered or a step has something to wait for.
func TestItemThatGoesBeforeTheReadyOnesIsRead(t *testing.T) {
	t.Parallel()
	client, err := framework.New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		k := node.Delayed
		if random.IntN(2) == 0 {
			k = node.ByPriorities(1 + random.IntN(3))
		}
		p := &node.Paths{Client: client, Queue: "/queue"}
		f := New(k, claim.NewWatch(p), random.IntN(3), Handler{})
		f.flight, f.mode = builders.Pipelined(testenv.Context(t)), watched
		f.prefetch.read(1 + random.IntN(2*prefetchBytes))
		state := ""
		some := func(what string, most int) (names []node.Name) {
			for range random.IntN(most + 1) {
				due := now.Add(-time.Duration(1+random.IntN(1000)) * time.Second)
				prefix := node.DelayPrefix(due)
				if !k.Delayed {
					prefix = node.PriorityPrefix(int32(random.IntN(5)))
				}
				n, _ := node.ParseName(fmt.Sprintf("%s%010d", prefix, random.IntN(1e9)))
				names = append(names, n)
				state += fmt.Sprintf("%s %s\n", what, n.Whole)
			}
			return names
		}
		for _, n := range some("ready", 3) {
			f.ready = append(f.ready, &claim.Message{Name: n})
		}
		for _, n := range some("left", 3) {
			f.backlog.note(claim.Event{What: claim.Created, Name: n.Whole})
		}
		if len(f.ready) == 0 || f.pick() != nil {
			continue
		}
		f.readAhead()
		if len(f.prefetched) == 0 {
			t.Fatalf("neither is an item delivered nor one read:\n%s", state)
		}
	}
}
