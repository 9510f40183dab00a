package main

import (
	"context"
	"errors"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestRun(t *testing.T) {
	var out, errs strings.Builder
	code := run(testenv.Context(t), []string{"-connect", testenv.ConnectString(t)}, &out, &errs)
	t.Log(out.String())
	if code != success || errs.Len() > 0 {
		t.Errorf("status %d: %s", code, errs.String())
	}
	for _, line := range []string{
		"1. Several clients, one lock",
		"ok       the counter is 80 of 80",
		"ok       there was never more than one holder",
		"2. Operations in the background",
		"ok       the 1000 callbacks came in the order of the calls",
		"3. A watch",
		"ok       the last it saw is the newest",
		"4. A session that ends under a holder",
		"ok       the context of its hold has ended",
		"ok       the late write of the first is refused",
		"All 13 invariants held",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q", line)
		}
	}
	if strings.Contains(out.String(), "VIOLATED") {
		t.Error("an invariant was violated")
	}
}

// TestLeavesNothing runs it in a chroot of its own.
func TestLeavesNothing(t *testing.T) {
	chroot := testenv.Chroot(t)
	var errs strings.Builder
	connect := testenv.Addr(t) + chroot
	if code := run(testenv.Context(t), []string{"-connect", connect}, &strings.Builder{}, &errs); code != success {
		t.Fatal(errs.String())
	}
	runs, _, err := testenv.Raw(t).Children(chroot + "/tour")
	if err != nil || len(runs) != 0 {
		t.Errorf("%v is left, %v", runs, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	cancel(errors.New("enough"))
	var out, errs strings.Builder
	code := run(ctx, []string{"-connect", testenv.ConnectString(t)}, &out, &errs)
	if code != failure || !strings.Contains(errs.String(), "enough") {
		t.Errorf("status %d: %s", code, errs.String())
	}
}

func TestServerOfItsOwn(t *testing.T) {
	var out, errs strings.Builder
	if code := run(testenv.Context(t), nil, &out, &errs); code != success {
		t.Errorf("status %d: %s", code, errs.String())
	}
	if !strings.Contains(out.String(), "ZooKeeper: one in memory at 127.0.0.1:") {
		t.Error(out.String())
	}
	picture := shownLines(t)
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "   waiting for a ZooKeeper server at ") {
			continue // a busy machine takes its time to connect
		}
		if line = withoutValues(strings.TrimSuffix(line, "\n")); !slices.Contains(picture, line) {
			t.Errorf("docs/tour.svg has no line %q: go run ./docs/pictures tour", line)
		}
	}
}

// shownLines returns the lines of the picture of this program, without their values.
func shownLines(t *testing.T) (lines []string) {
	t.Helper()
	svg, err := os.ReadFile("../../docs/tour.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range regexp.MustCompile("<text .*</text>").FindAllString(string(svg), -1) {
		lines = append(lines, withoutValues(html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(text, ""))))
	}
	return lines
}

// withoutValues returns a line without what differs from run to run.
func withoutValues(line string) string {
	return regexp.MustCompile(`\[.*\]|0x[0-9a-f]+|[0-9.]+(µs|ms|s\b)?`).ReplaceAllString(line, "#")
}

func TestRunWithoutServerSaysThatItWaits(t *testing.T) {
	late := testenv.NewLateServer(t)
	var errs strings.Builder
	if code := run(testenv.Context(t), []string{"-connect", late.ConnectString()}, late, &errs); code != success {
		t.Errorf("status %d: %s after\n%s", code, errs.String(), late)
	}
}

func TestBadUsage(t *testing.T) {
	var out, errs strings.Builder
	if code := run(testenv.Context(t), []string{"-nonsense"}, &out, &errs); code != badUsage || errs.Len() == 0 {
		t.Errorf("status %d: %s", code, errs.String())
	}
	if code := run(testenv.Context(t), []string{"-connect", "no port:x"}, &out, &errs); code != failure {
		t.Errorf("status %d", code)
	}
	if code := run(testenv.Context(t), []string{"-h"}, &out, &errs); code != success {
		t.Errorf("status %d", code)
	}
}

func TestViolation(t *testing.T) {
	var out strings.Builder
	r := report{w: &out}
	r.check(true, "good")
	r.check(false, "bad")
	if r.checked != 2 || r.violated != 1 || !strings.Contains(out.String(), "VIOLATED bad\n") {
		t.Errorf("%+v\n%s", r, out.String())
	}
}

func TestCounterIsFenced(t *testing.T) {
	ctx := testenv.Context(t)
	client, err := connect(testenv.ConnectString(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := counter{client, counterPath}
	if err := c.create(ctx); err != nil {
		t.Fatal(err)
	}
	for _, write := range []struct {
		token int64
		err   error
	}{{token: 5}, {token: 5}, {token: 7}, {token: 6, err: errFenced}, {token: 8}} {
		if _, err := c.increment(ctx, write.token); !errors.Is(err, write.err) {
			t.Errorf("token %d: %v", write.token, err)
		}
	}
	if n, _, err := c.read(ctx); n != (count{Value: 4, Token: 8}) || err != nil {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestFirstServer(t *testing.T) {
	for connect, want := range map[string]string{
		"a:1": "a:1", "a:1,b:2": "a:1", "a:1/x/y": "a:1", "a:1,b:2/x": "a:1",
	} {
		if got := firstServer(connect); got != want {
			t.Errorf("firstServer(%q) = %q", connect, got)
		}
	}
}
