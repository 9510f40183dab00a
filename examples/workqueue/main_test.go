package main

import (
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestAllJobsAreDone(t *testing.T) {
	var out strings.Builder
	o := options{connect: testenv.ConnectString(t), jobs: 50, workers: 3, takes: time.Millisecond}
	if err := run(testenv.Context(t), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[#.........] 5 of 50", "worker 0 has died", "[##########] 50 of 50", "all 50 jobs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestWorkersWithoutServerSayThatTheyWait(t *testing.T) {
	late := testenv.NewLateServer(t)
	o := options{connect: late.ConnectString(), jobs: 10, workers: 2, takes: time.Millisecond}
	if err := run(testenv.Context(t), o, late); err != nil {
		t.Errorf("%v after\n%s", err, late)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []options{{jobs: 0, workers: 2}, {jobs: 1, workers: 1}, {connect: "//", jobs: 1, workers: 2}} {
		if err := run(t.Context(), o, &strings.Builder{}); err == nil {
			t.Errorf("%+v", o)
		}
	}
}
