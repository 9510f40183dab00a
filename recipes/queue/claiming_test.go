package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
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
		k := delayed
		if random.IntN(2) == 0 {
			k = byPriorities(1 + random.IntN(3))
		}
		p := &place{client: client, path: "/queue"}
		f := newFetcher(k, newQueueWatch(p), random.IntN(3), &queue[string]{})
		f.flight, f.watching = builders.Pipelined(testenv.Context(t)), true
		f.prefetch.read(1 + random.IntN(2*prefetchBytes))
		state := ""
		some := func(what string, most int) (names []nodeName) {
			for range random.IntN(most + 1) {
				due := now.Add(-time.Duration(1+random.IntN(1000)) * time.Second)
				prefix := delayPrefix(due)
				if !k.delayed {
					prefix = priorityPrefix(int32(random.IntN(5)))
				}
				n, _ := parseName(fmt.Sprintf("%s%010d", prefix, random.IntN(1e9)))
				names = append(names, n)
				state += fmt.Sprintf("%s %s\n", what, n.whole)
			}
			return names
		}
		for _, n := range some("ready", 3) {
			f.ready = append(f.ready, &message{name: n})
		}
		for _, n := range some("left", 3) {
			f.backlog.note(news{created, n.whole})
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
