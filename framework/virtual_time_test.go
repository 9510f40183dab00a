package framework_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// soon bounds what waits for nothing, on a busy machine too. It is less than a client waits for what never comes: a
// test that uses it sets the timeouts of its client accordingly.
const soon = 10 * time.Second

// faulty is a server or a proxy that fails on demand.
type faulty interface{ Faults() *curatortest.Faults }

// inVirtualTime is [testenv.InVirtualTime]. A client needs the option dial.
func inVirtualTime(t *testing.T, test func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option)) {
	t.Helper()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		t.Helper()
		test(t, place, place.Addr()+chroot, framework.WithDialer(place.DialContext))
	})
}

// onTwoServers is [testenv.InVirtualTimeTwice]. The option dial knows both.
func onTwoServers(t *testing.T, test func(t *testing.T, one, two testenv.Place, chroot string, dial framework.Option)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		t.Helper()
		test(t, one, two, chroot, framework.WithDialer(one.DialContext))
	})
}

// onOwnServer is [testenv.OnOwnServer].
func onOwnServer(t *testing.T, test func(t *testing.T, server testenv.Instance, dial framework.Option)) {
	t.Helper()
	testenv.OnOwnServer(t, func(t *testing.T, server testenv.Instance, dial testenv.Dial) {
		t.Helper()
		test(t, server, framework.WithDialer(dial))
	})
}
