package framework_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The listeners of a client with a circuit breaker see no flapping; waiters for a connection do, and
// the tracker of the ensemble.
func TestCircuitBreakerHidesFlappingFromListeners(t *testing.T) {
	t.Parallel()
	pause := 500 * time.Millisecond
	if testenv.Real() { // where time goes on while the machine is busy
		pause = 5 * time.Second
	}
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		servers := newProvider("", true) // so that the first start fails
		client := newClient(t, "", dial, framework.WithEnsembleProvider(servers),
			framework.WithEnsembleTracker(), framework.WithCircuitBreaker(retry.Forever(pause)))
		recorded := record(client)
		if err := client.Start(); err == nil {
			t.Error("started without servers")
		}
		servers.SetConnectionString(connect)
		start(t, client)
		recorded.want(t, connected)
		began := time.Now()
		for range 5 {
			before := requests(proxy, "connect")
			proxy.Faults().CutAll()
			testenv.Eventually(t, func() bool { return requests(proxy, "connect") > before }, "the next connection")
			awaitConnected(t, client)
		}
		recorded.want(t, suspended, reconnected)
		if d := time.Since(began); d < pause {
			t.Errorf("reconnected after %v, want a pause of %v", d, pause)
		}
		read := func() bool { return requests(proxy, "getData") >= 3 }
		testenv.Eventually(t, read, "the configuration is read after each outage")
		recorded.end(t, client)
	})
}
