package simulation_test

import (
	"slices"
	"strings"
)

// tracePace is the number of changes between two reads of the servers' traces. A server keeps 10,000 requests.
const tracePace = 300

// observe passes the decisions of the servers to queues, barriers, counters, shared values and desired nodes.
func (w *world) observe() {
	if len(w.queues)+len(w.meets)+len(w.counters)+len(w.desired)+len(w.shared) == 0 {
		return
	}
	leader, err := w.cluster.Leader()
	if err != nil { // no server has a quorum
		return
	}
	for _, u := range w.queues {
		u.ledger.observe(leader)
	}
	for _, m := range w.meets {
		m.observe(leader)
	}
	for _, c := range w.counters {
		c.observe(leader)
	}
	for _, s := range w.shared {
		s.observe(leader)
	}
	for _, d := range w.desired {
		d.observe(leader)
	}
	if w.looks++; w.looks%tracePace == 0 {
		w.readTraces()
	}
}

// readTraces records which process requested the deletion of items without a lock.
func (w *world) readTraces() {
	unlocked := slices.DeleteFunc(slices.Clone(w.queues), func(u *workQueue) bool { return u.locks != "" })
	if len(unlocked) == 0 {
		return
	}
	for _, s := range w.cluster.Servers() {
		for _, e := range s.Trace() {
			if e.Reply || e.Op != "delete" && e.Op != "multi" {
				continue
			}
			for _, u := range unlocked {
				if p := w.clientOf(e.SessionID); p != nil && strings.HasPrefix(e.Path, u.path+"/") {
					u.ledger.recordRequest(p, strings.Split(e.Path, ","))
				}
			}
		}
	}
}
