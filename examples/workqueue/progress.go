package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// progress shows how many of the jobs are done, each time that another tenth is.
type progress struct {
	out       io.Writer
	half, all chan struct{}

	mu     sync.Mutex
	times  map[int]int // how often a job was done, by its number
	each   []int       // jobs done, by worker
	wanted int
	shown  int // tenths
}

func newProgress(out io.Writer, jobs, workers int) *progress {
	return &progress{
		out: out, half: make(chan struct{}), all: make(chan struct{}),
		times: make(map[int]int), each: make([]int, workers), wanted: jobs,
	}
}

// done notes a job that a worker has done.
func (p *progress) done(worker, job int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times[job]++
	p.each[worker]++
	if p.times[job] > 1 {
		return // its lock was lost, and another has done it too
	}
	n := len(p.times)
	if tenths := n * 10 / p.wanted; tenths > p.shown {
		p.shown = tenths
		bar := strings.Repeat("#", tenths) + strings.Repeat(".", 10-tenths)
		fmt.Fprintf(p.out, "[%s] %d of %d jobs, by worker: %v\n", bar, n, p.wanted, p.each)
	}
	if n == (p.wanted+1)/2 {
		close(p.half)
	}
	if n == p.wanted {
		close(p.all)
	}
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// sum returns the result as text.
func (p *progress) sum() {
	p.mu.Lock()
	again := 0
	for _, n := range p.times {
		again += n - 1
	}
	p.mu.Unlock()
	p.say("all %d jobs are done, %d of them more than once", p.wanted, again)
}
