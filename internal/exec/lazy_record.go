package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/telemetry"
)

// lazyRecord makes its record at the first use and replays earlier notes. A note never waits for the record.
type lazyRecord struct {
	making sync.Once
	ended  sync.Once
	record atomic.Pointer[telemetry.Record] // nil if there is none
	memory telemetry.Record

	mu    sync.Mutex
	done  bool
	notes []func(*telemetry.Record)

	waits []connectionWait // mu of the Executor
	sent  time.Time        // when the first request of a background operation was written
}

// make returns the record of op, and makes it the first time.
func (r *lazyRecord) make(op *Operation) *telemetry.Record {
	if made := r.made(); made != nil {
		return made
	}
	r.making.Do(func() {
		record := op.newRecord()
		r.mu.Lock()
		r.record.Store(record)
		r.done = true
		notes := r.notes
		r.notes = nil
		r.mu.Unlock()
		for _, in := range notes {
			in(record)
		}
	})
	return r.made()
}

// makeFirst is make for an operation that nothing else refers to yet.
func (r *lazyRecord) makeFirst(op *Operation) (isRecorded bool) {
	record := op.newRecord()
	r.record.Store(record)
	r.done = record != nil
	return r.done
}

// made returns the record, nil if it is not made yet.
func (r *lazyRecord) made() *telemetry.Record {
	if r == nil {
		return nil
	}
	return r.record.Load()
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
	in(r.made())
}
