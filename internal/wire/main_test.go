package wire_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(noiseVariable) != "" { // the process of TestContractLogOfTheLibraryDoesNotReachStderr
		if err := makeNoise(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
