package node

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Marks of the sections that may follow the items of a node. Each differs from the mark of an item, has letters that
// are not there by chance, and ends with the version of the section. The history comes first.
var (
	TrailerMark = []byte{0, 'C', 'T', 'C', 1} // a trace context follows, up to the end
	historyMark = []byte{0, 'C', 'D', 'C', 2} // a history follows
)

// History records the past of items that were put back. In bytes it is two numbers of 4, and one of 8 for the time.
type History struct {
	Failures int       // deliveries that have failed
	Requeues int       // how many times they were put back
	Put      time.Time // the first time, by the server's clock; zero if they were never put back
}

const historySize = 4 + 4 + 8

// AppendTrailer appends the trailer with a trace context to data, nothing if there is none.
func AppendTrailer(data, traceContext []byte) []byte {
	if len(traceContext) == 0 {
		return data
	}
	return append(append(data, TrailerMark...), traceContext...)
}

// TraceContextOf returns the trace context in a trailer, nil if there is none. Foreign bytes are not an error.
func TraceContextOf(trailer []byte) []byte {
	_, trailer = HistoryOf(trailer)
	traceContext, found := bytes.CutPrefix(trailer, TrailerMark)
	if !found {
		return nil
	}
	return traceContext
}

// HistoryOf returns the history of the items in front of a trailer, and the rest of it.
func HistoryOf(trailer []byte) (h History, rest []byte) {
	b, found := bytes.CutPrefix(trailer, historyMark)
	if !found || len(b) < historySize {
		return h, trailer
	}
	h.Failures = int(binary.BigEndian.Uint32(b))
	h.Requeues = int(binary.BigEndian.Uint32(b[4:]))
	h.Put = time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:])))
	return h, b[historySize:]
}

// WithHistory returns a trailer with a history. A foreign trailer stays unchanged.
func WithHistory(trailer []byte, h History) []byte {
	_, rest := HistoryOf(trailer)
	if len(rest) > 0 && !bytes.HasPrefix(rest, TrailerMark) {
		return trailer
	}
	changed := binary.BigEndian.AppendUint32(bytes.Clone(historyMark), uint32(h.Failures))
	changed = binary.BigEndian.AppendUint32(changed, uint32(h.Requeues))
	changed = binary.BigEndian.AppendUint64(changed, uint64(h.Put.UnixMilli()))
	return append(changed, rest...)
}

// FirstPut returns the time of the first put of the items of a node that was created at a time.
func (h History) FirstPut(created time.Time) time.Time {
	if h.Requeues == 0 || h.Put.After(created) { // the recorded time is impossible
		return created
	}
	return h.Put
}

// PutBack returns the new history when the items of a node that was created at a time are put back.
func (h History) PutBack(created time.Time) History {
	return History{Failures: h.Failures, Requeues: h.Requeues + 1, Put: h.FirstPut(created)}
}
