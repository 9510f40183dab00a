package main

import (
	"runtime"
	"syscall"
	"time"
)

// stopwatch measures the resources of this process between start and stop.
type stopwatch struct {
	start  time.Time
	cpu    time.Duration
	allocs uint64
}

func startWatch() stopwatch {
	w := stopwatch{allocs: allocations()}
	w.cpu, w.start = cpuTime(), time.Now()
	return w
}

// stop stores the measurement in r.
func (w stopwatch) stop(r *result) {
	r.Elapsed = time.Since(w.start)
	r.CPU = cpuTime() - w.cpu
	r.Allocs = allocations() - w.allocs
}

// cpuTime returns the user and system time of the process until now.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
