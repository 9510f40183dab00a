package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// seedVariable names the environment variable with the seed of a test to repeat.
const seedVariable = "CURATOR_SEED"

// Test is a test with random faults. When it fails, it prints the seed and a trace of the faults. The same seed makes
// the same choices; their effect on the clients depends on the machine.
type Test struct {
	tb    testing.TB
	seed  uint64
	start time.Time

	mu       sync.Mutex
	trace    []string
	expiries map[int64]time.Time // by session
}

// New returns the chaos test of tb. Its seed is the one of the environment, or else a random one.
func New(tb testing.TB) *Test {
	tb.Helper()
	s := &Test{tb: tb, seed: rand.Uint64(), start: time.Now(), expiries: map[int64]time.Time{}}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("%s=%d\n%s", seedVariable, s.seed, s.Trace())
		}
	})
	return s
}

// Seed returns the seed of the random choices.
func (s *Test) Seed() uint64 { return s.seed }

// Random returns a sequence of its own for each stream, always the same for the same seed. It is for one goroutine.
func (s *Test) Random(stream int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(stream))) }

// Note adds a line to the trace.
func (s *Test) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprintf("%8.3fs ", time.Since(s.start).Seconds())+fmt.Sprintf(format, args...))
}

// NoteExpiry records that the server is about to end a session by force. Its client may learn of it after another
// client gets the lock. Call it before the session ends.
func (s *Test) NoteExpiry(session int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.expiries[session]; !ok {
		s.expiries[session] = time.Now()
	}
}

// expired returns when a session was ended by force.
func (s *Test) expired(session int64) (when time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	when, ok = s.expiries[session]
	return when, ok
}

// Errorf fails the test, and notes it between the faults.
func (s *Test) Errorf(format string, args ...any) {
	s.tb.Helper()
	s.Note("FAILED: "+format, args...)
	s.tb.Errorf(format, args...)
}

// Trace returns all notes, one a line.
func (s *Test) Trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.trace, "\n")
}
