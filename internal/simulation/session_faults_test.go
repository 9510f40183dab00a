package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// sessionFaults affect sessions.
var sessionFaults = []fault{
	{name: "session is ended on the servers", strike: func(w *world, random *rand.Rand) (string, func()) {
		p, client := w.pickClient(random)
		if p == nil {
			return "", nil
		}
		session := client.SessionID()
		leader, err := w.cluster.Leader()
		if err != nil || session == 0 {
			return "", nil
		}
		for _, r := range w.judge.resources {
			for _, l := range r.lines {
				for _, child := range leader.Children(l.path) {
					node, _ := leader.Node(l.path + "/" + child)
					if node.Stat.EphemeralOwner == session && l.holds {
						w.judge.taken(r, l.path+"/"+child, p, sessionTimeout+tick)
					}
				}
			}
		}
		if w.cluster.ExpireSession(session) != nil {
			return "", nil
		}
		return fmt.Sprintf("%#x of %s", session, p.name), nil
	}},
	{name: "client learns that its session has expired", strike: func(w *world, random *rand.Rand) (string, func()) {
		p, client := w.pickClient(random)
		if p == nil {
			return "", nil
		}
		session := client.SessionID()
		if session == 0 { // this would match every new session
			return "", nil
		}
		_ = w.cluster.KillSession(session)
		return fmt.Sprintf("%#x of %s", session, p.name), nil
	}},
	{name: "session is moved", strike: func(w *world, random *rand.Rand) (string, func()) {
		p, client := w.pickClient(random)
		if p == nil {
			return "", nil
		}
		session := client.SessionID()
		if w.cluster.Servers()[0].MoveSession(session) != nil {
			return "", nil
		}
		return fmt.Sprintf("%#x of %s", session, p.name), nil
	}},
	{name: "client gives its session up", strike: func(w *world, random *rand.Rand) (string, func()) {
		p, client := w.pickClient(random)
		if p == nil {
			return "", nil
		}
		client.Reset()
		return p.name, nil
	}},
}

// processFaults affect processes.
var processFaults = []fault{
	{name: "process crashes", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.replace(random, func(p *process) { p.crash(true) })
	}},
	{name: "machine crashes", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.replace(random, func(p *process) { p.crash(false) })
	}},
	{name: "process leaves without releasing", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.replace(random, (*process).leave)
	}},
	{name: "clock jumps", strike: func(w *world, random *rand.Rand) (string, func()) {
		p := w.pickProcess(random)
		if p == nil {
			return "", nil
		}
		jump := time.Duration(random.NormFloat64() * float64(sessionTimeout))
		p.ahead.Add(int64(jump))
		return fmt.Sprintf("%v at %s", jump, p.name), nil
	}},
}

// replace ends a process, and starts another one in its place later.
func (w *world) replace(random *rand.Rand, end func(p *process)) (what string, undo func()) {
	s := pick(random, w.slots)
	if !s.mu.TryLock() {
		return "", nil // another fault replaces it already
	}
	old := s.process
	w.history.note("%s ends", old.name)
	end(old)
	return old.name, func() {
		defer s.mu.Unlock()
		old.closeNetwork()
		w.start(s)
	}
}
