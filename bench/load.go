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
	connecting       = "connect"
	reconnecting     = "reconnect"
	cacheLoad        = "cache-load"
	cacheMemory      = "cache-memory"
	cacheChange      = "cache-change"

	// lockLine has its threads stand in line for one lock with one client, again and again: the latency of the
	// hand-over with a line of that length.
	lockLine = "lock-line"
	// setDataSync has the holder of a lock write, setDataFenced with its fence.
	setDataSync   = "setData-sync"
	setDataFenced = "setData-fenced"
	// lockOneClient is lockShared with one client for all threads.
	lockOneClient = "lock-one-client"
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
	Safe    bool    `json:"safe"`   // a queue with a lock path
	Cache   string  `json:"cache"`
	// Keep leaves the created nodes where they are: a null server has none.
	Keep bool `json:"keep"`
}

// payload is the size of the data of all nodes, that of the null server's.
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

// result is the outcome of a load, as Java prints it, and what only Go has.
type result struct {
	java.Result
	Allocs uint64 `json:"allocs"` // of objects, in the whole process
}
