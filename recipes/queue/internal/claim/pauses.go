package claim

import (
	"context"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// pauses holds the paused settlements. Each has a timer, and no goroutine.
type pauses struct {
	mu    sync.Mutex
	over  bool                   // no settlement is paused any longer
	stops map[*Settlement]func() // the paused settlements, with the functions that end their pauses
	slots waitqueue.Serial       // serializes the wait for slots after the pauses
}

// pause delays x for d, until its session ends or until close, whichever comes first. Then x is submitted, or it
// continues if it has kept its slot.
func (s *Settler) pause(x *Settlement, d time.Duration) {
	p := &s.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		s.resume(x)
		return
	}
	timer := time.AfterFunc(d, func() { s.endPause(x) })
	stop := context.AfterFunc(x.Message.Lock.Session.Context(), func() { s.endPause(x) })
	p.stops[x] = func() { timer.Stop(); stop() }
}

func (s *Settler) endPause(x *Settlement) {
	p := &s.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if stop := p.stops[x]; stop != nil {
		stop()
		delete(p.stops, x)
		s.resume(x)
	}
}

// endPauses ends all pauses and prevents new ones.
func (s *Settler) endPauses() {
	p := &s.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for x, stop := range p.stops {
		stop()
		s.resume(x)
	}
	p.stops = nil
}

func (s *Settler) resume(x *Settlement) {
	if x.hasSlot {
		go s.retry(x, nil)
		return
	}
	s.pauses.slots.Do(func() { s.submit(x) })
}

// pauseAfter pauses x after a refusal. It returns false when it is time to give up: when the client is closed, and
// after close. Dead letters wait without a slot: where they cannot be put, other items can still be settled.
func (s *Settler) pauseAfter(x *Settlement, refusal error) bool {
	if reply.IsClientClosed(refusal) {
		return false
	}
	x.reportRefusal(refusal)
	if reply.IsClosed(s.closing) {
		return false
	}
	x.refusals++
	if x.Dead != nil && x.hasSlot {
		<-s.slots
		x.hasSlot = false
	}
	s.pause(x, reply.Doubled(firstRefusalPause, maxRefusalPause, x.refusals-1))
	return true
}
