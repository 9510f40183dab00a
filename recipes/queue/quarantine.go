package queue

import "time"

// How long an item is left alone that cannot be taken.
const (
	firstQuarantine = time.Second
	mostQuarantine  = time.Minute
)

// quarantine keeps the items that cannot be read or taken, each for a growing pause.
type quarantine struct {
	items map[string]*quarantined
}

type quarantined struct {
	until  time.Time
	waits  bool
	times  int
	causes map[string]struct{} // that were reported
}

// add puts an item in quarantine, and reports whether the cause is new.
func (q *quarantine) add(name string, now time.Time, cause error) (isNew bool) {
	x := q.items[name]
	if x == nil {
		if q.items == nil {
			q.items = make(map[string]*quarantined)
		}
		x = &quarantined{causes: make(map[string]struct{})}
		q.items[name] = x
	}
	x.until = now.Add(doubled(firstQuarantine, mostQuarantine, x.times))
	x.waits = true
	x.times++
	_, known := x.causes[cause.Error()]
	x.causes[cause.Error()] = struct{}{}
	return !known
}

// has reports whether an item is in quarantine.
func (q *quarantine) has(name string, now time.Time) bool {
	x := q.items[name]
	return x != nil && now.Before(x.until)
}

// next returns when the first item may be tried again of those that ended has not returned, zero if there is none.
func (q *quarantine) next() (first time.Time) {
	for _, x := range q.items {
		if x.waits && (first.IsZero() || x.until.Before(first)) {
			first = x.until
		}
	}
	return first
}

// ended returns the items that may be tried again, each once.
func (q *quarantine) ended(now time.Time) (names []string) {
	for name, x := range q.items {
		if x.waits && !now.Before(x.until) {
			x.waits = false
			names = append(names, name)
		}
	}
	return names
}

// keep forgets the items that are not there.
func (q *quarantine) keep(isThere func(name string) bool) {
	for name := range q.items {
		if !isThere(name) {
			delete(q.items, name)
		}
	}
}

func (q *quarantine) forget(name string) { delete(q.items, name) }
