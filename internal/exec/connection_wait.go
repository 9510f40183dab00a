package exec

import "github.com/gocurator/curator/internal/telemetry"

// maxConnectionWaits is the largest number of recorded waits of an operation.
const maxConnectionWaits = 8

// connectionWait is a time for which an operation has waited for a connection, in ns since Executor.epoch.
type connectionWait struct {
	from, to int64 // to is 0 while the wait lasts
}

// beginWait records that op begins to wait for a connection. A background operation has its queue time instead. mu is
// held.
func (e *Executor) beginWait(op *Operation) {
	if op.observed && !op.background && len(op.lazy.waits) < maxConnectionWaits {
		op.lazy.waits = append(op.lazy.waits, connectionWait{from: e.now()})
	}
}

// endWait records that the wait of op is over, before its answer can come. resume takes that back. mu is held for both.
func (e *Executor) endWait(op *Operation) (resume func()) {
	if op.lazy == nil {
		return func() {}
	}
	n := len(op.lazy.waits)
	if n == 0 || op.lazy.waits[n-1].to != 0 {
		return func() {}
	}
	op.lazy.waits[n-1].to = e.now()
	return func() { op.lazy.waits[n-1].to = 0 }
}

// waitsOf returns the waits of op up to now.
func (e *Executor) waitsOf(op *Operation) (waits []telemetry.ConnectionWait) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range op.lazy.waits {
		to := w.to
		if to == 0 {
			to = e.now()
		}
		waits = append(waits, telemetry.ConnectionWait{From: e.at(w.from), To: e.at(to)})
	}
	return waits
}
