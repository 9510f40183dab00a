package chaos_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

// failing is a test that may fail without failing the one it is part of.
type failing struct {
	testing.TB
	errors, logged []string
	cleanups       []func()
}

func (f *failing) Helper()           {}
func (f *failing) Failed() bool      { return len(f.errors) > 0 }
func (f *failing) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }

func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *failing) Logf(format string, args ...any) {
	f.logged = append(f.logged, fmt.Sprintf(format, args...))
}

func (f *failing) end() {
	for _, fn := range f.cleanups {
		fn()
	}
}

func TestFailedTestPrintsSeedAndTrace(t *testing.T) {
	t.Setenv("CURATOR_SEED", "42")
	for _, fails := range []bool{false, true} {
		f := &failing{TB: t}
		s := chaos.New(f)
		s.Note("cut client %d", 3)
		if fails {
			s.Errorf("two hold it")
		}
		f.end()
		if !fails {
			if len(f.logged) != 0 {
				t.Errorf("printed %q", f.logged)
			}
			continue
		}
		want := regexp.MustCompile(`^CURATOR_SEED=42\n +\d+\.\d{3}s cut client 3\n +\d+\.\d{3}s FAILED: two hold it$`)
		if len(f.errors) != 1 || len(f.logged) != 1 || !want.MatchString(f.logged[0]) {
			t.Errorf("printed %q, failed with %q", f.logged, f.errors)
		}
	}
}

func TestSeedDecidesRandom(t *testing.T) {
	sequence := func(stream int) string {
		random := chaos.New(t).Random(stream)
		return fmt.Sprint(random.Uint64(), random.Uint64())
	}
	t.Setenv("CURATOR_SEED", "42")
	first, other := sequence(1), sequence(2)
	if first != sequence(1) || first == other {
		t.Errorf("%s, then %s, another stream %s", first, sequence(1), other)
	}
	t.Setenv("CURATOR_SEED", "43")
	if first == sequence(1) {
		t.Errorf("another seed gives %s too", first)
	}
	t.Setenv("CURATOR_SEED", "")
	if a, b := chaos.New(t).Seed(), chaos.New(t).Seed(); a == b {
		t.Errorf("the same seed twice: %d", a)
	}
	if strings.Contains(chaos.New(t).Trace(), "\n") {
		t.Error("a new test has a trace")
	}
}
