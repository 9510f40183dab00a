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
//	open   target connect      the chroot of connect must exist
//	run    target load...      [Result]
//	memory                     [Memory]
//	close  target
//
// Commands run one after the other. A load is case lock threads seconds window payload waiters leases batch safe cache.
// What is left out: a mutex, 1 thread, 1 second, a window of 1000, 100 bytes, 1000 waiters, 1 lease, batches of 1, not
// safe, a CuratorCache.
//
// # Cases
//
//	create-sync, getData-sync   threads use one client; latency of the operation
//	create-bg, getData-bg       window operations in flight; latency from submission to callback
//	lock-alone                  threads use one client, each a lock of its own; acquire and release
//	lock-shared                 threads have a client each, with one lock; acquire and release
//	lock-one-client             the same with one client for all
//	lock-contended              as lock-shared, for locks with one holder; latency of the hand-over
//	waiters                     waiters threads blocked on one lock, then let through; latency of the
//	                            hand-over. Memory is right in a fresh process only
//	latch                       threads latches with a client each; the leader is closed, and starts again;
//	                            latency from the call of close to the call of the next leader's listener
//	queue                       one producer, one consumer, window items on their way, batch in a node, with
//	                            a lock path if safe; latency from put to the consumer
//	queue-put                   window puts without an answer, nobody consumes; latency of the put
//	queue-consume               window items are there before
//	queue-backlog               window items are there, and each consumed one is replaced
//	double-barrier              threads members with a client each enter and leave; latency of such a round
//	shared-change               a shared count is set; latency from the call to the listener
//	counter                     threads increment one number, with a client each
//	counter-one-client          the same with one counter for all
//	nodes-return                one client keeps window nodes, and its session is ended; latency from the first
//	                            deleted node until all are there again
//	instances-return            the same with window instances of 50 services
//	instance-seen               an instance is registered while threads clients with a cache each watch its
//	                            service, and taken out again; latency from the call to the listener of each
//	instance-pick               one of window instances of a service is picked, in turn
//	cache-load                  caches of window nodes, one after the other; latency from start until all are read
//	cache-memory                one such cache, an operation is a node; memory before, and when all are read
//	cache-change                a node is written; latency from the call to the listener
//	connect                     clients one after the other; latency from start to the first answer, while
//	                            Elapsed and CPU include the close
//	reconnect                   requests without a pause while the caller cuts; Ops counts the cuts
//	                            noticed, latency from the last answer before to the first one after. Java
//	                            waits 0.1 s and up to 1 s more, and another 1 s if connect has one server
//
// The locks are mutex, read, write and semaphore, the caches curator, tree and children. Single operations and
// connections work on a null server, everything else needs a real one.
package java

import (
	"embed"
	"time"

	"github.com/gocurator/curator/interop"
)

//go:embed *.java
var sources embed.FS

// Bench is the program, with the virtual machine as it is by default.
var Bench = interop.Program{Class: "Bench", Sources: sources}

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
	// Requests is the number of requests of the new sessions, with handshakes and pings: nodes-return, instances-return.
	// 0 means that the server does not count them.
	Requests int64 `json:"requests"`

	Before  Memory `json:"before"`  // waiters, cache-memory: without them
	Waiting Memory `json:"waiting"` // when all of them waited, or all nodes were read
}

// Memory is the memory in use after a garbage collection.
type Memory struct {
	HeapBytes int64 `json:"heapBytes"`
	RSSKB     int64 `json:"rssKB"` // -1 where the system has no number
	Threads   int   `json:"threads"`
}
