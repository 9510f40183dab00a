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
	mutexUncontended = "mutex-uncontended"
	mutexContended   = "mutex-contended"
	connecting       = "connect"
	reconnecting     = "reconnect"
	waiting          = "waiters"

	// mutexLine has its threads stand in line for one lock with one client, again and again: the latency of the
	// hand-over with a line of that length.
	mutexLine = "mutex-line"
)

// load is the work of one chunk. Java understands the same fields.
type load struct {
	Case    string  `json:"case"`
	Seconds float64 `json:"seconds"`
	Threads int     `json:"threads"`
	Window  int     `json:"window"`
	Payload int     `json:"payload"`
	Waiters int     `json:"waiters"`
	// Keep leaves the created nodes where they are: a null server has none.
	Keep bool `json:"keep"`
}

// payload is the size of the data of all nodes, that of the null server's.
const payload = 100

// work returns the load of a case, without a time.
func work(name string) load {
	return load{Case: name, Threads: 1, Window: 1000, Payload: payload, Waiters: 1000}
}

func (l load) threads(n int) load { l.Threads = n; return l }

func (l load) duration() time.Duration { return time.Duration(l.Seconds * float64(time.Second)) }

// result is the outcome of a load, as Java tells it, and what only Go tells.
type result struct {
	java.Result
	Allocs uint64 `json:"allocs"` // of objects, in the whole process
}
