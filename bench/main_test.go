package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// TestMain lets the test program be the processes that the program starts.
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
