package queue

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Behind the items of a node there may be sections, each with a mark in front: no mark of an item, a word that nobody
// writes by chance, and the version of what follows. The history comes first.
var (
	trailerMark = []byte{0, 'C', 'T', 'C', 1} // and a trace context, up to the end
	historyMark = []byte{0, 'C', 'D', 'C', 2} // and a history
)

// history is what has happened to items that were put back. In bytes it is two numbers of 4, and one of 8 for the time.
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

// traceContextOf returns the trace context in a trailer, nil if there is none. What others may have put there is no
// error.
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

// withHistory returns a trailer with a history. One of somebody else stays as it is.
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

// firstPut returns when items were put first, whose node was created at a time.
func (h history) firstPut(created time.Time) time.Time {
	if h.requeues == 0 || h.put.After(created) { // it says what cannot be
		return created
	}
	return h.put
}

// putBack returns the history of items that are put back, whose node was created at a time.
func (h history) putBack(created time.Time) history {
	return history{failures: h.failures, requeues: h.requeues + 1, put: h.firstPut(created)}
}
