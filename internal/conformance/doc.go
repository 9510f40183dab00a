// Package conformance holds the in-process server of package curatortest to Apache ZooKeeper. It has tests alone: cases
// whose answers are written out, and random sequences of requests whose answers are compared, both in raw frames.
package conformance
