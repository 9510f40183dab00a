package simulation_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// history has the newest events of a world.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []string
}

// mostEvents is the number of events that a failure prints.
const mostEvents = 100

func newHistory() *history { return &history{began: time.Now()} }

// protection is the part of a node's name that is unique, and differs from run to run.
var protection = regexp.MustCompile(`_c_[0-9a-f-]{36}-`)

// note adds an event.
func (h *history) note(format string, args ...any) {
	event := fmt.Sprintf("%12.6fs ", time.Since(h.began).Seconds()) +
		protection.ReplaceAllString(fmt.Sprintf(format, args...), "")
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 2*mostEvents {
		h.events = append(h.events[:0], h.events[mostEvents:]...)
	}
	h.events = append(h.events, event)
}

// last returns the newest events, one a line.
func (h *history) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.events[max(0, len(h.events)-mostEvents):], "\n")
}
