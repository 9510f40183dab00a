package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// report counts the events of all worlds.
type report struct {
	mu     sync.Mutex
	worlds int
	time   time.Duration
	grants int
	hits   map[string]int // of faults, by kind
	counts map[string]int // of events
}

func newReport() *report { return &report{hits: map[string]int{}, counts: map[string]int{}} }

func (r *report) add(d time.Duration, grants int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.worlds++
	r.time += d
	r.grants += grants
}

func (r *report) hit(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits[fault]++
}

func (r *report) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// lockEvents are events that have to occur.
var lockEvents = []string{
	ownClients, "fenced writes", "fenced writes that are refused", "requests to release",
	"holders that are asked to release", orderedWrites, fencedRounds, asksOfProvider,
}

// nodeEvents are events of desired nodes and shared values that have to occur.
var nodeEvents = []string{
	quietNodes, writtenNodes, refusedNodes, quietCopies, sharedWrites, sharedConflicts, missingChroots,
}

// never returns the kinds of faults and events that have not occurred.
func (r *report) never() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range allFaults() {
		if r.hits[f.name] == 0 {
			names = append(names, f.name)
		}
	}
	for _, name := range lockEvents {
		if r.counts[name] == 0 {
			names = append(names, name)
		}
	}
	for _, name := range nodeEvents {
		if *queues && r.counts[name] == 0 {
			names = append(names, name)
		}
	}
	for _, name := range consumerFaults {
		if *queues && r.hits[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}

func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	all := 0
	for _, n := range r.hits {
		all += n
	}
	fmt.Fprintf(&b, "%d seeds, %.1f cluster-hours, %d grants, %d faults:", r.worlds, r.time.Hours(), r.grants, all)
	writeCounts(&b, r.hits)
	b.WriteString("\nevents:")
	writeCounts(&b, r.counts)
	return b.String()
}

func writeCounts(b *strings.Builder, counts map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "\n%8d %s", counts[name], name)
	}
}
