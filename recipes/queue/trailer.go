package queue

import "bytes"

// trailerMark is in front of the trace context behind the items of a node: no mark of an item, a word that nobody writes by
// chance, and the version of what follows.
var trailerMark = []byte{0, 'C', 'T', 'C', 1}

// appendTrailer appends the trailer with a trace context to data, nothing if there is none.
func appendTrailer(data, traceContext []byte) []byte {
	if len(traceContext) == 0 {
		return data
	}
	return append(append(data, trailerMark...), traceContext...)
}

// traceContextOf returns the trace context in a trailer, nil if there is none. What others may have put there is no error.
func traceContextOf(trailer []byte) []byte {
	traceContext, found := bytes.CutPrefix(trailer, trailerMark)
	if !found {
		return nil
	}
	return traceContext
}
