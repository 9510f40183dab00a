package main

import (
	"runtime"
	"syscall"
	"time"
)

// stopwatch measures the resources of this process between start and stop.
type stopwatch struct {
	start         time.Time
	cpu           time.Duration
	allocs, bytes uint64
}

func startWatch() stopwatch {
	var w stopwatch
	w.allocs, w.bytes = allocations()
	w.cpu, w.start = cpuTime(), time.Now()
	return w
}

// stop stores the measurement in r.
func (w stopwatch) stop(r *result) {
	r.Elapsed = time.Since(w.start)
	r.CPU = cpuTime() - w.cpu
	allocs, bytes := allocations()
	r.Allocs, r.Bytes = allocs-w.allocs, bytes-w.bytes
}

// cpuTime returns the user and system time of the process until now.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// allocations returns the number of objects that the process has allocated, and their bytes.
func allocations() (objects, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}
