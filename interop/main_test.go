package interop_test

import (
	"os"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(goPeerVariable) != "" {
		beGoPeer()
		return
	}
	// As in production. Java 5.4.0 does not always outlive a container that vanishes: that Go does is tested without it.
	testenv.Main(m, curatortest.WithSystemProperty("znode.container.checkIntervalMs", "60000"))
}
