package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestServiceFollowsItsSettings(t *testing.T) {
	connect := testenv.ConnectString(t)
	var out strings.Builder
	if err := run(testenv.Context(t), options{connect: connect}, &out); err != nil {
		t.Fatal(err)
	}
	want := `no settings
"hello" at most 10 times a second
"hello" at most 20 times a second
invalid settings: cache: decode /examples/config/settings: ` +
		`json: cannot unmarshal string into Go struct field Settings.Rate of type int
"hello" at most 20 times a second
"good day" at most 20 times a second
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Another service starts with what there is.
	ctx, stop := context.WithCancel(testenv.Context(t))
	lines, w := io.Pipe()
	ended := make(chan error)
	go func() { ended <- run(ctx, options{connect: connect, follow: true}, w) }()
	line := make([]byte, 100)
	n, err := lines.Read(line)
	if got := string(line[:n]); err != nil || got != "\"good day\" at most 20 times a second\n" {
		t.Errorf("got %q, %v", got, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for _, data := range []string{"", "{", `{"Rate": 0}`, `{"Rate": -1}`} {
		if _, err := parse("/s", []byte(data)); err == nil {
			t.Errorf("%q is accepted", data)
		}
	}
	if err := run(t.Context(), options{connect: "//"}, io.Discard); err == nil {
		t.Error("no error")
	}
}
