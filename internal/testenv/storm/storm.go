package storm

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

// seedVariable names the environment variable with the seed of a storm that is to come again.
const seedVariable = "CURATOR_SEED"

// Storm is a test with random faults. When the test fails, it prints the seed, and what was done to whom and when. The
// seed brings back what was chosen; how the clients meet it is up to the machine.
type Storm struct {
	tb    testing.TB
	seed  uint64
	start time.Time

	mu       sync.Mutex
	trace    []string
	expiries map[int64]time.Time // by session
}

// New returns the storm of a test, with the seed of the environment, or else another one every time.
func New(tb testing.TB) *Storm {
	tb.Helper()
	s := &Storm{tb: tb, seed: rand.Uint64(), start: time.Now(), expiries: map[int64]time.Time{}}
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

// Seed returns what the storm was made from.
func (s *Storm) Seed() uint64 { return s.seed }

// Random returns a sequence of its own for each stream, always the same for the same seed. It is for one goroutine.
func (s *Storm) Random(stream int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(stream))) }

// Note adds a line to the trace.
func (s *Storm) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprintf("%8.3fs ", time.Since(s.start).Seconds())+fmt.Sprintf(format, args...))
}

// NoteExpiry notes that the server is about to end a session by force: its client may not have learnt of it when
// somebody else is granted what it has. Call it before the session ends.
func (s *Storm) NoteExpiry(session int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.expiries[session]; !ok {
		s.expiries[session] = time.Now()
	}
}

// expired returns when a session was ended by force.
func (s *Storm) expired(session int64) (when time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	when, ok = s.expiries[session]
	return when, ok
}

// Errorf fails the test, and notes it between the faults.
func (s *Storm) Errorf(format string, args ...any) {
	s.tb.Helper()
	s.Note("FAILED: "+format, args...)
	s.tb.Errorf(format, args...)
}

// Trace returns all notes, one a line.
func (s *Storm) Trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.trace, "\n")
}
