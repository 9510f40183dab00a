package queue

import (
	"bytes"
	"encoding/binary"
)

// Behind the items of a node there may be sections, each with a mark in front: no mark of an item, a word that nobody
// writes by chance, and the version of what follows. The failures come first.
var (
	trailerMark  = []byte{0, 'C', 'T', 'C', 1} // and a trace context, up to the end
	failuresMark = []byte{0, 'C', 'D', 'C', 1} // and how many deliveries have failed, in 4 bytes
)

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
	_, trailer = failuresOf(trailer)
	traceContext, found := bytes.CutPrefix(trailer, trailerMark)
	if !found {
		return nil
	}
	return traceContext
}

// failuresOf returns how many deliveries of the items in front of a trailer have failed, and the rest of it.
func failuresOf(trailer []byte) (n int, rest []byte) {
	number, found := bytes.CutPrefix(trailer, failuresMark)
	if !found || len(number) < 4 {
		return 0, trailer
	}
	return int(binary.BigEndian.Uint32(number)), number[4:]
}

// withFailures returns a trailer that says how many deliveries have failed. One of somebody else stays as it is.
func withFailures(trailer []byte, n int) []byte {
	_, rest := failuresOf(trailer)
	if len(rest) > 0 && !bytes.HasPrefix(rest, trailerMark) {
		return trailer
	}
	changed := binary.BigEndian.AppendUint32(bytes.Clone(failuresMark), uint32(n))
	return append(changed, rest...)
}
