package simulation_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// history is what has happened in a world, the newest of it.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []string
}

// mostEvents is how many events a failure prints.
const mostEvents = 100

func newHistory() *history { return &history{began: time.Now()} }

// protection is what makes the name of a node unique, and differs each time.
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
