package chaos

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Contexts checks the contexts of holders: each holder relies on its grant until its context ends. So the contexts of
// two grants that exclude each other must not be alive at once, whatever the server has decided.
type Contexts struct {
	most    int
	session time.Duration
	pulse   *Pulse

	mu    sync.Mutex
	lives []*life
}

// life is the time from a grant to the end of its context.
type life struct {
	grants  []Grant
	session int64
	begin   time.Time
	end     time.Time // zero while it lasts
}

// NewContexts returns the contexts of a thing that most non-exclusive holders may have at once. session is the timeout
// of their sessions. A context may end later by the time that the process missed, as pulse measures it.
func NewContexts(most int, session time.Duration, pulse *Pulse) *Contexts {
	return &Contexts{most: most, session: session, pulse: pulse}
}

// Granted records grants of a session, which are held until ctx ends. Call it at once after the grant.
func (c *Contexts) Granted(ctx context.Context, session int64, grants ...Grant) {
	l := &life{grants: grants, session: session, begin: time.Now()}
	c.mu.Lock()
	c.lives = append(c.lives, l)
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		l.end = time.Now()
	})
}

// Check fails the test for each grant while a context that excludes it was alive.
func (c *Contexts) Check(s *Test, name string) {
	s.tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.lives, func(a, b *life) int { return a.begin.Compare(b.begin) })
	for i, now := range c.lives {
		held := slices.Clone(now.grants)
		for _, before := range c.lives[:i] {
			if c.overlap(s, before, now.begin) {
				held = append(held, before.grants...)
			}
		}
		if err := tooMany(held, c.most); err != nil {
			s.Errorf("%s: when %v was granted, live contexts excluded each other: %v", name, now.grants, err)
		}
	}
}

// overlap reports whether the context of a life was alive at a moment without an excuse. The client of a session that
// was expired by force learns it late, and a process that was stopped ends contexts late.
func (c *Contexts) overlap(s *Test, l *life, moment time.Time) bool {
	end := l.end
	if end.IsZero() {
		end = time.Now()
	}
	if expired, ok := s.expired(l.session); ok && expired.Before(end) {
		end = expired
	}
	late := end.Sub(moment)
	return late > Grain && late > Grain+c.pulse.Missed(moment.Add(-c.session), end)
}
