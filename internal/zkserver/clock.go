package zkserver

import "time"

// now returns the time of the service.
func (s *Service) now() time.Time { return time.Now().Add(s.advanced) }

// tickAfter returns the first tick after t. Sessions whose time is over at t end at that tick.
func (s *Service) tickAfter(t time.Time) time.Time {
	n := t.Sub(s.began)/s.config.Tick + 1
	return s.began.Add(n * s.config.Tick)
}

// halfTickAfter returns the first half tick after t. Leaders ping their followers every half tick.
func (s *Service) halfTickAfter(t time.Time) time.Time { return s.halfTickBefore(t).Add(s.halfTick()) }

// halfTickBefore returns the last half tick before t, or t.
func (s *Service) halfTickBefore(t time.Time) time.Time {
	return s.began.Add(t.Sub(s.began) / s.halfTick() * s.halfTick())
}

func (s *Service) halfTick() time.Duration { return max(s.config.Tick/2, 1) }

// Advance moves the service's clock forward, and immediately does all work that is due then. Members that notice on the
// way that they are cut off do so at their own time, so that later times count from there.
func (s *Service) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.advanced + max(d, 0)
	for {
		now := s.now()
		next, ok := s.nextCutOffDeadline()
		wait := max(next.Sub(now), 0)
		if !ok || s.paused > 0 || s.closed || s.advanced+wait >= end {
			break
		}
		s.advanced += wait
		s.elapse()
	}
	s.advanced = end
	s.elapse()
	s.wakeClock()
}

// runClock calls elapse whenever work is due.
func (s *Service) runClock() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.changed:
		case <-s.done:
			return
		}
		s.mu.Lock()
		next := s.elapse()
		wait := next.Sub(s.now())
		s.mu.Unlock()
		timer.Reset(wait)
	}
}

// wakeClock makes runClock compute the next due time again.
func (s *Service) wakeClock() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Pause stops the clock until resume is called, which does all due work at once.
func (s *Service) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.paused--
		s.elapse()
		s.wakeClock()
	}
}

// elapse does all due work and returns the time of the next work.
func (s *Service) elapse() time.Time {
	now := s.now()
	if s.paused > 0 || s.closed {
		return s.tickAfter(now)
	}
	report, reporting := s.reportSessions(now)
	s.endCutOffs(now)
	s.expireSessions(now)
	s.sweepDue(now)
	next := s.nextSweep
	if tick := s.tickAfter(now); tick.Before(next) {
		next = tick
	}
	if reporting && report.Before(next) {
		next = report
	}
	if end, ok := s.nextCutOffDeadline(); ok && end.Before(next) {
		next = end
	}
	for _, m := range s.members {
		if due, ok := m.receive(now); ok && due.Before(next) {
			next = due
		}
	}
	s.trim()
	return next
}

// receive applies the writes that have reached a lagging member, and returns the time at which the next ones reach it.
func (m *Member) receive(now time.Time) (next time.Time, more bool) {
	if !m.serving() || m.lag <= 0 {
		return time.Time{}, false
	}
	before := m.tree.applied
	m.applyUntil(now.Add(-m.lag))
	if m.tree.applied != before {
		m.service.announce()
	}
	if i := m.service.missedBy(m); i < len(m.service.log) {
		return m.service.log[i].at.Add(m.lag), true
	}
	return time.Time{}, false
}
