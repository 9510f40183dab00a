package lineup

import "sync"

// Serial runs funcs one after the other, in the order of Do, on a goroutine that there is only while there are any.
// The zero value is ready.
type Serial struct {
	mu      sync.Mutex
	waiting []func()
	running bool
}

// Do has fn run behind those before it, and does not wait for it.
func (s *Serial) Do(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, fn)
	if !s.running {
		s.running = true
		go s.run()
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
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.running, ended = false, true
			s.mu.Unlock()
			return
		}
		fn := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		fn()
	}
}
