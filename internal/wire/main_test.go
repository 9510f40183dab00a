package wire_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
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
	testenv.Main(m)
}
