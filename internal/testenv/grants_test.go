package testenv_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// failures counts the errors of a test.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Errorf(string, ...any) { f.n++ }

func TestGrants(t *testing.T) {
	for name, tt := range map[string]struct {
		second time.Duration // when the second begins; the first ends after a second
		missed time.Duration
		want   int
	}{
		"one behind the other": {time.Second, 0, 0},
		"both at once":         {time.Second - 1, 0, 1},
		"as nothing happens":   {time.Second - 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := testenv.NewGrants(), &failures{TB: t}
				first, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s.Add(first, "first")
				s.Go(func() {
					time.Sleep(tt.second)
					s.Add(t.Context(), "second")
				})
				time.Sleep(2 * time.Second)
				s.End()
				s.Check(f, func(_, _ time.Time) time.Duration { return tt.missed })
				if f.n != tt.want {
					t.Errorf("%d errors, want %d", f.n, tt.want)
				}
			})
		})
	}
}
