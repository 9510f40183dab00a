package main

import (
	"time"

	"github.com/gocurator/curator/bench/java"
)

// The cases of a load, named as on the Java side; package java describes them.
const (
	createSync       = "create-sync"
	getDataSync      = "getData-sync"
	createBackground = "create-bg"
	getDataBg        = "getData-bg"
	lockAlone        = "lock-alone"
	lockShared       = "lock-shared"
	lockContended    = "lock-contended"
	waiting          = "waiters"
	latches          = "latch"
	queueing         = "queue"
	queuePut         = "queue-put"
	queueConsume     = "queue-consume"
	queueBacklog     = "queue-backlog"
	doubleBarrier    = "double-barrier"
	counting         = "counter"
	connecting       = "connect"
	reconnecting     = "reconnect"
	cacheLoad        = "cache-load"
	cacheMemory      = "cache-memory"
	cacheChange      = "cache-change"
	sharedChange     = "shared-change"
	nodeChange       = "node-change"
	nodesReturn      = "nodes-return"
	cacheReturn      = "cache-return"
	instancesReturn  = "instances-return"
	instanceSeen     = "instance-seen"
	instancePick     = "instance-pick"

	// lockLine is one lock, one client, and threads that acquire it again and again. The latency is that of a hand-over in
	// a line of that length.
	lockLine = "lock-line"
	// setDataSync writes as the holder of a lock, setDataFenced with the fence of the lock.
	setDataSync   = "setData-sync"
	setDataFenced = "setData-fenced"
	// lockOneClient is lockShared with one client for all threads.
	lockOneClient = "lock-one-client"
	// countingOneClient is counting with one counter for all threads.
	countingOneClient = "counter-one-client"
)

// The kinds of locks.
const (
	mutex     = "mutex"
	readLock  = "read"
	writeLock = "write"
	semaphore = "semaphore"
)

// load is the work of one chunk. Java understands the same fields.
type load struct {
	Case    string  `json:"case"`
	Seconds float64 `json:"seconds"`
	Threads int     `json:"threads"`
	Window  int     `json:"window"`
	Payload int     `json:"payload"`
	Waiters int     `json:"waiters"`
	Lock    string  `json:"lock"`
	Leases  int     `json:"leases"` // of a semaphore
	Batch   int     `json:"batch"`  // so many items in one node of a queue
	Safe    bool    `json:"safe"`   // a queue with a lock path, a counter with receipts
	Cache   string  `json:"cache"`
	// Keep leaves the created nodes in place: a null server has none.
	Keep bool `json:"keep"`
}

// payload is the size of the data of all nodes. The null server has the same.
const payload = 100

// work returns the load of a case, without a time.
func work(name string) load {
	return load{
		Case: name, Threads: 1, Window: 1000, Payload: payload, Waiters: 1000, Lock: mutex, Leases: 1, Batch: 1,
		Cache: curatorCache,
	}
}

func (l load) threads(n int) load     { l.Threads = n; return l }
func (l load) lock(kind string) load  { l.Lock = kind; return l }
func (l load) leases(leases int) load { l.Leases = leases; return l }
func (l load) window(n int) load      { l.Window = n; return l }
func (l load) batch(n int) load       { l.Batch = n; return l }
func (l load) safe() load             { l.Safe = true; return l }
func (l load) cache(kind string) load { l.Cache = kind; return l }

func (l load) duration() time.Duration { return time.Duration(l.Seconds * float64(time.Second)) }

// result is the outcome of a load, as Java prints it, with fields of Go.
type result struct {
	java.Result
	Allocs uint64 `json:"allocs"` // of objects, in the whole process
	Bytes  uint64 `json:"bytes"`  // allocated
}
