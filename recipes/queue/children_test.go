package queue_test

import (
	"runtime"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// failure notes that a test fails.
type failure struct {
	testing.TB
	failed bool
}

func (f *failure) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}

// TestChildrenOfMissingPathAreNoneAndAnyOtherErrorFails lists a path that is not there, and one that is invalid.
func TestChildrenOfMissingPathAreNoneAndAnyOtherErrorFails(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{queuePath: false, "/queue//a": true} {
		f, ended := &failure{TB: t}, make(chan struct{})
		go func() {
			defer close(ended)
			if names := children(f, testenv.ConnectString(t), path); len(names) > 0 {
				t.Errorf("children of %s: %q", path, names)
			}
		}()
		<-ended
		if f.failed != want {
			t.Errorf("children of %s: failed is %t, want %t", path, f.failed, want)
		}
	}
}
