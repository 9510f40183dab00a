package exec

import (
	"sync"

	"github.com/gocurator/curator/internal/telemetry"
)

// lazyRecord makes its record at the first use and replays earlier notes. A note never waits for the record.
type lazyRecord struct {
	making sync.Once
	ended  sync.Once

	mu     sync.Mutex
	done   bool
	record *telemetry.Record // nil if there is none
	notes  []func(*telemetry.Record)

	waits []connectionWait // mu of the Executor
}

// make returns the record, and calls begin for it the first time.
func (r *lazyRecord) make(begin func() *telemetry.Record) *telemetry.Record {
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
func (r *lazyRecord) made() *telemetry.Record {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

// note calls in with the record, now or when it is made.
func (r *lazyRecord) note(in func(*telemetry.Record)) {
	r.mu.Lock()
	if !r.done {
		r.notes = append(r.notes, in)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	in(r.record)
}
