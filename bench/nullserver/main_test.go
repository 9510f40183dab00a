package nullserver

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asServer makes the test program be the server, for the test that spawns it.
const asServer = "CURATOR_NULLSERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
