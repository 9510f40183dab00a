package exec

import (
	"sync"

	"github.com/gocurator/curator/internal/telemetry"
)

// recording is the making of a record while others have something to note in it. Nobody who notes waits for whoever
// makes it.
type recording struct {
	making sync.Once
	told   sync.Once

	mu     sync.Mutex
	done   bool
	record *telemetry.Record // nil if there is to be none
	notes  []func(*telemetry.Record)
}

// make returns the record, which it has begin make the first time.
func (r *recording) make(begin func() *telemetry.Record) *telemetry.Record {
	r.making.Do(func() {
		record := begin()
		r.mu.Lock()
		r.record, r.done = record, true
		notes := r.notes
		r.notes = nil
		r.mu.Unlock()
		for _, in := range notes {
			in(record)
		}
	})
	return r.made()
}

// made returns the record, nil if it is not made yet.
func (r *recording) made() *telemetry.Record {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

// note calls in with the record, now or when it is made.
func (r *recording) note(in func(*telemetry.Record)) {
	r.mu.Lock()
	if !r.done {
		r.notes = append(r.notes, in)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	in(r.record)
}
