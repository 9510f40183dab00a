package lineup

import (
	"context"
	"sync"
)

// Serial runs funcs one after the other, on a goroutine that there is only while there are any. The zero value is
// ready.
type Serial struct {
	mu      sync.Mutex
	waiting []func()
	current int           // number of the func that runs, or of the last one
	running bool          // a goroutine is there for them
	changed chan struct{} // closed when a func has ended; nil if nobody waits for that
}

// Do runs fn behind the others, and does not wait for it.
func (s *Serial) Do(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, fn)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// Running returns a number of the func that runs, 0 if none does.
func (s *Serial) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return 0
	}
	return s.current
}

// Wait waits until all funcs have returned, or ctx has ended. It does not wait while the func with the number except
// runs, which may be the caller: see Running.
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
	ended := false
	defer func() {
		if !ended { // the func has ended the goroutine with runtime.Goexit, as a test that fails does
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

// next returns the next func, nil if there is none.
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
