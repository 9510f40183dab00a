package waitqueue

import (
	"context"
	"sync"
)

// Serial runs funcs one after the other on a goroutine of its own. The goroutine ends when no func is left. The zero
// value is ready for use.
type Serial struct {
	mu      sync.Mutex
	waiting []func()
	current int           // number of the func that runs, or of the last one
	running bool          // the goroutine runs
	runner  uint64        // number of that goroutine
	changed chan struct{} // closed when a func has returned; nil if nobody waits
}

// Do runs fn after the others. It does not wait.
func (s *Serial) Do(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, fn)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// Running returns the number of the func that runs, or 0.
func (s *Serial) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return 0
	}
	return s.current
}

// IsCaller reports whether the caller is one of the funcs: it runs on their goroutine.
func (s *Serial) IsCaller() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running && s.runner == goroutineID()
}

// Wait waits until all funcs have returned or ctx ends. It returns at once while the func with the number except runs:
// a func that waits passes its own number, see Running.
func (s *Serial) Wait(ctx context.Context, except int) {
	for {
		s.mu.Lock()
		if !s.running || except != 0 && s.current == except {
			s.mu.Unlock()
			return
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Serial) run() {
	s.mu.Lock()
	s.runner = goroutineID()
	s.mu.Unlock()
	ended := false
	defer func() {
		if !ended { // a func has called runtime.Goexit, as a failed test does
			go s.run()
		}
	}()
	for {
		fn := s.next()
		if fn == nil {
			ended = true
			return
		}
		fn()
	}
}

// next returns the next func, or nil.
func (s *Serial) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	if len(s.waiting) == 0 {
		s.running = false
		return nil
	}
	fn := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.current++
	return fn
}
