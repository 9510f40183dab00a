package queue

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Marks of the sections that may follow the items of a node. Each differs from the mark of an item, has letters that
// are not there by chance, and ends with the version of the section. The history comes first.
var (
	trailerMark = []byte{0, 'C', 'T', 'C', 1} // a trace context follows, up to the end
	historyMark = []byte{0, 'C', 'D', 'C', 2} // a history follows
)

// history records the past of items that were put back. In bytes it is two numbers of 4, and one of 8 for the time.
type history struct {
	failures int       // deliveries that have failed
	requeues int       // how many times they were put back
	put      time.Time // the first time, by the server's clock; zero if they were never put back
}

const historySize = 4 + 4 + 8

// appendTrailer appends the trailer with a trace context to data, nothing if there is none.
func appendTrailer(data, traceContext []byte) []byte {
	if len(traceContext) == 0 {
		return data
	}
	return append(append(data, trailerMark...), traceContext...)
}

// traceContextOf returns the trace context in a trailer, nil if there is none. Foreign bytes are not an error.
func traceContextOf(trailer []byte) []byte {
	_, trailer = historyOf(trailer)
	traceContext, found := bytes.CutPrefix(trailer, trailerMark)
	if !found {
		return nil
	}
	return traceContext
}

// historyOf returns the history of the items in front of a trailer, and the rest of it.
func historyOf(trailer []byte) (h history, rest []byte) {
	b, found := bytes.CutPrefix(trailer, historyMark)
	if !found || len(b) < historySize {
		return h, trailer
	}
	h.failures = int(binary.BigEndian.Uint32(b))
	h.requeues = int(binary.BigEndian.Uint32(b[4:]))
	h.put = time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:])))
	return h, b[historySize:]
}

// withHistory returns a trailer with a history. A foreign trailer stays unchanged.
func withHistory(trailer []byte, h history) []byte {
	_, rest := historyOf(trailer)
	if len(rest) > 0 && !bytes.HasPrefix(rest, trailerMark) {
		return trailer
	}
	changed := binary.BigEndian.AppendUint32(bytes.Clone(historyMark), uint32(h.failures))
	changed = binary.BigEndian.AppendUint32(changed, uint32(h.requeues))
	changed = binary.BigEndian.AppendUint64(changed, uint64(h.put.UnixMilli()))
	return append(changed, rest...)
}

// firstPut returns the time of the first put of the items of a node that was created at a time.
func (h history) firstPut(created time.Time) time.Time {
	if h.requeues == 0 || h.put.After(created) { // the recorded time is impossible
		return created
	}
	return h.put
}

// putBack returns the new history when the items of a node that was created at a time are put back.
func (h history) putBack(created time.Time) history {
	return history{failures: h.failures, requeues: h.requeues + 1, put: h.firstPut(created)}
}
