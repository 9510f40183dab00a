package claim

import (
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// Bounds of the pause of an item that cannot be taken.
const (
	firstQuarantine = time.Second
	MaxQuarantine   = time.Minute
)

// Quarantine holds the items that cannot be read or taken, each for a growing pause.
type Quarantine struct {
	Items map[string]*quarantined
	First time.Time // the earliest end of a pause; zero if no item waits
}

type quarantined struct {
	until  time.Time // zero after the pause
	times  int
	causes reply.Causes
}

// Add puts an item in quarantine, and reports whether the cause is new.
func (q *Quarantine) Add(name string, now time.Time, cause error) (isNew bool) {
	x := q.Items[name]
	if x == nil {
		if q.Items == nil {
			q.Items = make(map[string]*quarantined)
		}
		x = &quarantined{}
		q.Items[name] = x
	}
	x.until = now.Add(reply.Doubled(firstQuarantine, MaxQuarantine, x.times))
	q.expect(x.until)
	x.times++
	return x.causes.IsNew(cause)
}

// Has reports whether an item is in quarantine.
func (q *Quarantine) Has(name string, now time.Time) bool {
	x := q.Items[name]
	return x != nil && now.Before(x.until)
}

// Ended returns the items that may be tried again, each once.
func (q *Quarantine) Ended(now time.Time) (names []string) {
	if q.First.IsZero() || now.Before(q.First) {
		return nil
	}
	q.First = time.Time{}
	for name, x := range q.Items {
		switch {
		case x.until.IsZero():
		case now.Before(x.until):
			q.expect(x.until)
		default:
			x.until = time.Time{}
			names = append(names, name)
		}
	}
	return names
}

// Keep removes the items that do not exist any more.
func (q *Quarantine) Keep(isThere func(name string) bool) {
	for name := range q.Items {
		if !isThere(name) {
			delete(q.Items, name)
		}
	}
}

// Forget removes an item.
func (q *Quarantine) Forget(name string) { delete(q.Items, name) }

// expect notes the end of a pause.
func (q *Quarantine) expect(end time.Time) {
	if q.First.IsZero() || end.Before(q.First) {
		q.First = end
	}
}
