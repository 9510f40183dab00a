package errtext_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/errtext"
)

func TestWrapWritesOnePrefix(t *testing.T) {
	tests := []struct {
		err  string
		want string
	}{
		{"locks: not acquired", "locks: acquire /a: not acquired"},
		{"curator: create /a: node exists", "locks: acquire /a: create /a: node exists"},
		{"zk: node exists", "locks: acquire /a: node exists"},
		{"queue: full", "locks: acquire /a: queue: full"}, // of some other package
		{"locks:", "locks: acquire /a: locks:"},
		{"", "locks: acquire /a: "},
	}
	for _, tt := range tests {
		cause := errors.New(tt.err)
		err := errtext.Wrap(cause, "locks", "acquire %s", "/a")
		if err.Error() != tt.want || !errors.Is(err, cause) || errors.Unwrap(err) != cause {
			t.Errorf("Wrap(%q) = %q, want %q around the same error", tt.err, err, tt.want)
		}
	}
}

func TestJoin(t *testing.T) {
	what, cause := errors.New("queue: outcome not known"), errors.New("queue: closed")
	err := errtext.Join(what, cause)
	if err.Error() != "queue: outcome not known: closed" || !errors.Is(err, what) || !errors.Is(err, cause) {
		t.Errorf("Join = %q", err)
	}
	if errtext.Join(io.EOF, nil) != io.EOF || errtext.Join(nil, io.EOF) != io.EOF || errtext.Join(nil, nil) != nil {
		t.Error("Join of nil is not the other error")
	}
}

func TestTooShort(t *testing.T) {
	const want = "1µs is below a millisecond: durations are in Go's units, did you mean 1000*time.Millisecond?"
	if got := errtext.TooShort(1000); got != want {
		t.Errorf("TooShort(1000) = %q, want %q", got, want)
	}
	for _, d := range []time.Duration{-1, 0, time.Millisecond, time.Hour} {
		if got := errtext.TooShort(d); got != "" {
			t.Errorf("TooShort(%v) = %q, want nothing", d, got)
		}
	}
	if errtext.TooShort(1) == "" || errtext.TooShort(time.Millisecond-1) == "" {
		t.Error("a duration below a millisecond passes")
	}
}
