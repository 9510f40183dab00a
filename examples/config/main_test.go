package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// waitingLine is a line that there may be: a busy machine takes its time to connect.
var waitingLine = regexp.MustCompile("(?m)^waiting for a ZooKeeper server at .*\n")

// scan goes to the next line that is not the one of a busy machine.
func scan(lines *bufio.Scanner) bool {
	for lines.Scan() {
		if !waitingLine.MatchString(lines.Text() + "\n") {
			return true
		}
	}
	return false
}

func TestFleetSharesItsSettings(t *testing.T) {
	connect := testenv.ConnectString(t)
	ctx, stop := context.WithCancel(testenv.Context(t))
	defer stop()
	read, w := io.Pipe()
	ended := make(chan error)
	go func() {
		defer w.Close() //nolint:errcheck // always nil
		ended <- run(ctx, options{connect: connect, name: "b", follow: true}, w)
	}()
	lines := bufio.NewScanner(read)
	if !scan(lines) || lines.Text() != "no settings" {
		t.Fatalf("got %q, %v", lines.Text(), lines.Err())
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // the pipe would hold it up

	var out strings.Builder
	if err := run(ctx, options{connect: connect, name: "a"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `no settings
"hello" at most 10 times a second, as all of a, b
"hello" at most 20 times a second, as all of a, b
invalid settings: shared: watch /examples/config/settings: ` +
		`json: cannot unmarshal string into Go struct field Settings.Rate of type int
"hello" at most 20 times a second, as all of a, b
"good day" at most 20 times a second, as all of a, b
`
	if diff := cmp.Diff(want, waitingLine.ReplaceAllString(out.String(), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServiceStartsWithSettingsThatAreThere(t *testing.T) {
	connect := testenv.ConnectString(t)
	if err := run(testenv.Context(t), options{connect: connect, name: "a"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(testenv.Context(t))
	read, w := io.Pipe()
	ended := make(chan error)
	go func() {
		defer w.Close() //nolint:errcheck // always nil
		ended <- run(ctx, options{connect: connect, name: "b", follow: true}, w)
	}()
	lines := bufio.NewScanner(read)
	if want := `"good day" at most 20 times a second, as all of b`; !scan(lines) || lines.Text() != want {
		t.Errorf("got %q, %v", lines.Text(), lines.Err())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServiceWithoutServerSaysThatItWaits(t *testing.T) {
	late := testenv.NewLateServer(t)
	if err := run(testenv.Context(t), options{connect: late.ConnectString(), name: "a"}, late); err != nil {
		t.Errorf("%v after\n%s", err, late)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for _, data := range []string{"", "{", `{"Rate": 0}`, `{"Rate": -1}`} {
		if _, err := (checked{}).Decode([]byte(data)); err == nil {
			t.Errorf("%q is accepted", data)
		}
	}
	if err := run(t.Context(), options{connect: "//"}, io.Discard); err == nil {
		t.Error("no error")
	}
}
