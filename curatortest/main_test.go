package curatortest_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gocurator/curator/curatortest"
)

// orphanVariable has this test binary start a server and wait for its end instead of running tests.
const orphanVariable = "CURATORTEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		os.Exit(startAndWait())
	}
	goleak.VerifyTestMain(m)
}

func startAndWait() int {
	s, err := curatortest.NewRealServer()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.PID())
	_, _ = io.Copy(io.Discard, os.Stdin) // for ever
	return 0
}
