package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// TestMain runs the test program as one of the processes that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == asChild || os.Args[1] == asNullServer) {
		if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m)
}

func TestRun(t *testing.T) {
	ctx := testenv.Context(t)
	var out strings.Builder
	args := []string{"-rounds", "1", "-warmup", "0", "-chunk", "10ms", "-only", "getData, 128"}
	if err := run(ctx, args, nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{on(oneCore, curator), on(allCores, curator), limit, on(allCores, plain)} {
		if !strings.Contains(out.String(), "| getData, 128 goroutines | null server | "+name+" |") {
			t.Errorf("no line of %s in\n%s", name, out.String())
		}
	}
	for _, bad := range [][]string{{"-only", "no such row"}, {"-only", "("}, {"-rounds", "0"}, {"what"}} {
		if err := run(ctx, bad, nil, &out); err == nil {
			t.Errorf("%q was no error", bad)
		}
	}
}
