package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// On shared cores the kernel's scheduler decides what is measured: a real server answers 15,000 requests a second, or
// 38,000, for as long as its threads happen to be where they are. So it has one half of the cores, and who works with
// it the other, as if they were on two machines.
var (
	allCores       = coreRange(0, runtime.NumCPU())
	serverCores    = coreRange(0, runtime.NumCPU()/2)
	contenderCores = coreRange(runtime.NumCPU()/2, runtime.NumCPU())
)

// cores are those of the contenders of a row. How much memory a client takes it shows with all of them. With all of
// them a client of the null server would fight for them with that server, and its goroutines for the memory of each
// operation.
func (r row) cores() string {
	if r.fresh {
		return allCores
	}
	return contenderCores
}

// coreRange gives the cores from one to before another, as taskset takes them.
func coreRange(from, to int) string { return fmt.Sprintf("%d-%d", from, to-1) }

// startedOn has start start a process that runs on those cores, where that can be had. Processes inherit the cores, so
// we move there ourselves meanwhile.
func startedOn[P any](cores string, start func() (P, error)) (P, error) {
	if runtime.NumCPU() < 2 || cores == allCores || moveTo(cores) != nil {
		return start()
	}
	defer func() { _ = moveTo(allCores) }()
	return start()
}

// moveTo has all threads of this process run on these cores.
func moveTo(cores string) error {
	return exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", cores, strconv.Itoa(os.Getpid())).Run()
}
