package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// cores is the part of the machine that a process gets. On shared cores the kernel's scheduler decides the result: a
// real server answers 15,000 requests a second, or 38,000, depending on the cores of its threads. So the server has one
// half of the cores and the contender the other, like two machines.
type cores string

const (
	serverCores    cores = "the server's half"
	contenderCores cores = "the other half"
	oneCore        cores = "one core" // the first one of the contender's half
	allCores       cores = "all cores"
)

// cores returns the cores of a contender. A row of memory uses all cores. On all cores a client of the null server
// competes with that server, and its goroutines compete for memory.
func (r row) cores(e entry) cores {
	switch {
	case e.cores != "":
		return e.cores
	case r.fresh:
		return allCores
	}
	return contenderCores
}

// span returns the first of the cores and the one after the last.
func (c cores) span() (from, to int) {
	all := runtime.NumCPU()
	half := all / 2
	switch c {
	case serverCores:
		return 0, max(half, 1)
	case contenderCores:
		return half, all
	case oneCore:
		return half, half + 1
	}
	return 0, all
}

func (c cores) count() int {
	from, to := c.span()
	return to - from
}

// list returns the cores as taskset takes them.
func (c cores) list() string {
	from, to := c.span()
	return fmt.Sprintf("%d-%d", from, to-1)
}

// startedOn starts a process on some cores, if the system allows it. Processes inherit the cores, so this process moves
// there meanwhile.
func startedOn[P any](c cores, start func() (P, error)) (P, error) {
	if c.count() == runtime.NumCPU() || moveTo(c) != nil {
		return start()
	}
	defer func() { _ = moveTo(allCores) }()
	return start()
}

// moveTo moves all threads of this process to these cores.
func moveTo(c cores) error {
	return exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", c.list(), strconv.Itoa(os.Getpid())).Run()
}
