package main

import (
	"fmt"
	"io"
)

// report prints the progress, and counts what was found. It is used by one goroutine.
type report struct {
	w        io.Writer
	steps    int
	checked  int
	violated int
}

// step begins a step.
func (r *report) step(title string) {
	r.steps++
	fmt.Fprintf(r.w, "\n%d. %s\n", r.steps, title)
}

// say prints progress.
func (r *report) say(format string, args ...any) { fmt.Fprintf(r.w, "   "+format+"\n", args...) }

// check states an invariant, and whether it held.
func (r *report) check(held bool, format string, args ...any) {
	r.checked++
	mark := "ok      "
	if !held {
		r.violated++
		mark = "VIOLATED"
	}
	fmt.Fprintf(r.w, "   "+mark+" "+format+"\n", args...)
}
