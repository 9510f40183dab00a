package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/telemetry"
)

// lazyRecord creates its record at the first use and replays earlier notes. A note never waits for the record.
type lazyRecord struct {
	making sync.Once
	ended  sync.Once
	record atomic.Pointer[telemetry.Record] // nil before it is made, and if the operation is not recorded
	memory telemetry.Record

	waited atomic.Bool // a caller waits, which records the end

	mu    sync.Mutex
	done  bool
	notes []func(*telemetry.Record)

	waits []connectionWait // guarded by Executor.mu
	sent  time.Time        // when the first request of a background operation was written
	endAt int64            // when the operation ended, in ns since Executor.epoch
}

// make returns the record of op. The first call creates it.
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

// makeFirst creates the record of an operation that no other goroutine uses yet.
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
