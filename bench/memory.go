package main

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/gocurator/curator/bench/java"
)

// memoryNow returns the memory of the process after a garbage collection, without free pages.
func memoryNow() java.Memory {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return java.Memory{HeapBytes: int64(m.HeapAlloc), RSSKB: residentKB(), Threads: runtime.NumGoroutine()}
}

// residentKB returns the resident set, -1 where the system has no number.
func residentKB() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte("VmRSS:")); ok {
			n, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			if err != nil {
				return -1
			}
			return n
		}
	}
	return -1
}
