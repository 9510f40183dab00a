package chaos

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Contexts judges what holders believe: each has what it was granted until its context ends. So the contexts of two
// that exclude each other must not be alive at once, whatever the server knows.
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

// NewContexts returns the judge of a thing that so many may hold at once, of those who are not to be alone. session is
// the timeout of their sessions. What the process missed by the pulse excuses a context that ends late.
func NewContexts(most int, session time.Duration, pulse *Pulse) *Contexts {
	return &Contexts{most: most, session: session, pulse: pulse}
}

// Granted notes grants of a session, which are held until ctx ends. Call it as soon as they are granted.
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

// overlap reports whether the context of a life was alive at a moment and no excuse ends it: a session that was expired
// by force tells its client late, and a process that stood still ends contexts late.
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
