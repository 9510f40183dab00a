package exec

import "github.com/gocurator/curator/internal/telemetry"

// maxConnectionWaits is the largest number of recorded waits of an operation.
const maxConnectionWaits = 8

// connectionWait is one wait of an operation for a connection. Times are in ns since Executor.epoch.
type connectionWait struct {
	from, to int64 // to is 0 while the wait lasts
}

// beginWait records that op begins to wait for a connection. Background operations record their queue time instead. mu
// is held.
func (e *Executor) beginWait(op *Operation) {
	if op.record != nil && !op.background && len(op.record.waits) < maxConnectionWaits {
		op.record.waits = append(op.record.waits, connectionWait{from: e.now()})
	}
}

// endWait records that the wait of op is over, before its answer can come. undo reverts that. mu is held for both
// calls.
func (e *Executor) endWait(op *Operation) (undo func()) {
	if op.record == nil {
		return func() {}
	}
	n := len(op.record.waits)
	if n == 0 || op.record.waits[n-1].to != 0 {
		return func() {}
	}
	op.record.waits[n-1].to = e.now()
	return func() { op.record.waits[n-1].to = 0 }
}

// waitsOf returns the waits of op up to now.
func (e *Executor) waitsOf(op *Operation) (waits []telemetry.ConnectionWait) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range op.record.waits {
		to := w.to
		if to == 0 {
			to = e.now()
		}
		waits = append(waits, telemetry.ConnectionWait{From: e.at(w.from), To: e.at(to)})
	}
	return waits
}
