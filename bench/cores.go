package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// On shared cores the kernel's scheduler decides the result: a real server answers 15,000 requests a second, or 38,000,
// depending on the cores of its threads. So the server has one half of the cores and the contender the other, like two
// machines.
var (
	allCores       = coreRange(0, runtime.NumCPU())
	serverCores    = coreRange(0, runtime.NumCPU()/2)
	contenderCores = coreRange(runtime.NumCPU()/2, runtime.NumCPU())
)

// cores returns the cores of the contenders of a row. A row of memory uses all cores. On all cores a client of the null
// server would compete with that server, and its goroutines would compete for memory.
func (r row) cores() string {
	if r.fresh {
		return allCores
	}
	return contenderCores
}

// coreRange returns the cores from one to before another, as taskset takes them.
func coreRange(from, to int) string { return fmt.Sprintf("%d-%d", from, to-1) }

// startedOn starts a process on some cores, if the system allows it. Processes inherit the cores, so this process moves
// there meanwhile.
func startedOn[P any](cores string, start func() (P, error)) (P, error) {
	if runtime.NumCPU() < 2 || cores == allCores || moveTo(cores) != nil {
		return start()
	}
	defer func() { _ = moveTo(allCores) }()
	return start()
}

// moveTo moves all threads of this process to these cores.
func moveTo(cores string) error {
	return exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", cores, strconv.Itoa(os.Getpid())).Run()
}
