// Package produce puts items into a queue: in order, several in one request, and within a bound.
//
// Producer accepts puts, nextBatch cuts them into batches, Producer.settle learns their outcomes, and Producer.Flush
// waits for them. Room delays puts while a queue is full.
package produce
