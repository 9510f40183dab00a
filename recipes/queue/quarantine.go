package queue

import "time"

// Bounds of the pause of an item that cannot be taken.
const (
	firstQuarantine = time.Second
	maxQuarantine   = time.Minute
)

// quarantine holds the items that cannot be read or taken, each for a growing pause.
type quarantine struct {
	items map[string]*quarantined
	first time.Time // the earliest end of a pause; zero if no item waits
}

type quarantined struct {
	until  time.Time // zero after the pause
	times  int
	causes causes
}

// add puts an item in quarantine, and reports whether the cause is new.
func (q *quarantine) add(name string, now time.Time, cause error) (isNew bool) {
	x := q.items[name]
	if x == nil {
		if q.items == nil {
			q.items = make(map[string]*quarantined)
		}
		x = &quarantined{}
		q.items[name] = x
	}
	x.until = now.Add(doubled(firstQuarantine, maxQuarantine, x.times))
	q.first = earlier(q.first, x.until)
	x.times++
	return x.causes.isNew(cause)
}

// has reports whether an item is in quarantine.
func (q *quarantine) has(name string, now time.Time) bool {
	x := q.items[name]
	return x != nil && now.Before(x.until)
}

// ended returns the items that may be tried again, each once.
func (q *quarantine) ended(now time.Time) (names []string) {
	if q.first.IsZero() || now.Before(q.first) {
		return nil
	}
	q.first = time.Time{}
	for name, x := range q.items {
		switch {
		case x.until.IsZero():
		case now.Before(x.until):
			q.first = earlier(q.first, x.until)
		default:
			x.until = time.Time{}
			names = append(names, name)
		}
	}
	return names
}

// keep removes the items that do not exist any more.
func (q *quarantine) keep(isThere func(name string) bool) {
	for name := range q.items {
		if !isThere(name) {
			delete(q.items, name)
		}
	}
}

func (q *quarantine) forget(name string) { delete(q.items, name) }
