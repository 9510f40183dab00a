package simulation_test

import (
	"slices"
	"strings"
)

// tracePace is how many changes there are between two looks at what the clients ask. A server keeps 10,000 requests.
const tracePace = 300

// observe has queues and barriers note what the servers have decided.
func (w *world) observe() {
	if len(w.queues)+len(w.meets) == 0 {
		return
	}
	leader, err := w.cluster.Leader()
	if err != nil { // nobody decides anything
		return
	}
	for _, u := range w.queues {
		u.ledger.observe(leader)
	}
	for _, m := range w.meets {
		m.observe(leader)
	}
	if w.looks++; w.looks%tracePace == 0 {
		w.readTraces()
	}
}

// readTraces notes who has asked for the deletion of items without a lock.
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
					u.ledger.ask(p, strings.Split(e.Path, ","))
				}
			}
		}
	}
}
