package main

import (
	"slices"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// TestJavaDoesTheSame runs a short load of each case in Java.
func TestJavaDoesTheSame(t *testing.T) {
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	j, err := startContender(ctx, place{javas, contenderCores})
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, j.close)
	away, err := startAway(testenv.Addr(t)) // only the rows that need it go away
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, away.Close)
	if err := j.connect(ctx, away.Addr()); err != nil {
		t.Fatal(err)
	}
	for _, r := range allRows() {
		number := slices.IndexFunc(r.entries, func(e entry) bool { return e.library == javas })
		if number < 0 || r.server == cutServer { // it needs a proxy that cuts
			continue
		}
		l := r.entries[number].load
		l.Seconds, l.Window, l.Waiters = 0.02, 10, 5
		if result, err := j.run(ctx, l); err != nil || result.Ops == 0 || result.Errors > 0 {
			t.Errorf("%s: %+v, %v", r, result, err)
		}
	}
	if err := j.leave(ctx); err != nil {
		t.Error(err)
	}
}
