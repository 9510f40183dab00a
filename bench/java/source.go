// Package java carries the Java side of the benchmarks: the workloads of Java Curator, which obey the Go
// benchmark program.
//
//	peer, err := interop.Start(ctx, java.Bench)
//	err = peer.Call(ctx, "open", interop.Args{"target": "real", "connect": connect}, nil)
//	var r java.Result
//	err = peer.Call(ctx, "run", interop.Args{"target": "real", "case": "getData-bg", "window": 1000}, &r)
//
// # Commands
//
//	open   target connect                                      the chroot of connect must exist
//	run    target case threads seconds window payload waiters  [Result]
//	memory                                                     [Memory]
//	close  target
//
// Commands run one after the other. Those left out: 1 thread, 1 second, a window of 1000, 100 bytes, 1000
// waiters.
//
// # Cases
//
//	create-sync, getData-sync   threads use one client; latency of the operation
//	create-bg, getData-bg       window operations in flight; latency from submission to callback
//	mutex-uncontended           threads use one client, each a lock of its own; acquire and release
//	mutex-contended             threads have a client each, all want one lock; latency of the hand-over
//	connect                     clients one after the other; latency from start to the first answer, while
//	                            Elapsed and CPU include the close
//	reconnect                   asks all the time while the caller cuts the connection; Ops counts the cuts
//	                            noticed, latency from the last answer before to the first one after. Java
//	                            waits 0.1 s and up to 1 s more, and another 1 s if connect has one server
//	waiters                     waiters threads blocked on one lock, then let through; latency of the
//	                            hand-over. Memory means something in a fresh process only
//
// The lock cases need a real server, the others work on a null server too.
package java

import (
	_ "embed"
	"time"

	"github.com/gocurator/curator/interop"
)

//go:embed Bench.java
var source []byte

// Bench is the program, with the virtual machine as it is by default.
var Bench = interop.Program{Class: "Bench", Source: source}

// Result is the outcome of one run.
type Result struct {
	Ops        int64         `json:"ops"`
	Errors     int64         `json:"errors"` // of the operations, or threads that gave up; 0 in a good run
	FirstError string        `json:"firstError"`
	Elapsed    time.Duration `json:"elapsedNs"`
	CPU        time.Duration `json:"cpuNs"` // of the whole process, in steps of 10 ms on Linux
	P50        float64       `json:"p50us"` // latencies in microseconds
	P99        float64       `json:"p99us"`
	Max        float64       `json:"maxus"`

	Answers int64         `json:"answers"` // reconnect: all operations answered
	Ready   time.Duration `json:"readyNs"` // waiters: until all of them waited
	Before  Memory        `json:"before"`  // waiters: without them
	Waiting Memory        `json:"waiting"` // waiters: when all of them waited
}

// Memory is what the process uses after a garbage collection.
type Memory struct {
	HeapBytes int64 `json:"heapBytes"`
	RSSKB     int64 `json:"rssKB"` // -1 where the system does not tell
	Threads   int   `json:"threads"`
}
