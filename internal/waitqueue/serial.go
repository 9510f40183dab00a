package waitqueue

import (
	"context"
	"sync"

	"github.com/gocurator/curator/internal/usercode"
)

// Serial runs funcs one after the other on a goroutine of its own. The goroutine ends when no func is left. The zero
// value is ready for use.
type Serial struct {
	mu      sync.Mutex
	waiting []func()
	current int           // number of the running func, or of the last one that ran
	running bool          // the goroutine runs
	changed chan struct{} // closed when a func has returned; nil if no call of Wait waits
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

// Running returns the number of the running func, or 0.
func (s *Serial) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return 0
	}
	return s.current
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
	usercode.Loop(usercode.Go, func() bool {
		fn := s.next()
		if fn == nil {
			return false
		}
		fn()
		return true
	})
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
		s.running, s.waiting = false, nil
		return nil
	}
	fn := s.waiting[0]
	s.waiting[0], s.waiting = nil, s.waiting[1:] // the array may be large, and live long
	s.current++
	return fn
}
