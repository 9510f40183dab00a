package framework_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// A program may write again and again and be refused each time: what is refused proves nothing, and must not stand in
// for the heartbeats.
func TestWritesThatAreRefusedDoNotCostTheSession(t *testing.T) {
	const timeout = 4 * time.Second
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, connect string, dial framework.Option) {
		client := connectClient(t, connect, dial, framework.WithSessionTimeout(timeout))
		session := client.Session()
		defer client.QuorumHeartbeats()()
		if _, err := client.Create().ForPath(t.Context(), "/there", nil); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 2*timeout; {
			if err := client.Delete().ForPath(t.Context(), "/none"); !errors.Is(err, zk.ErrNoNode) {
				t.Fatal(err)
			}
			select {
			case <-session.Context().Done():
				t.Fatalf("the session was lost after %v", time.Since(began))
			case <-time.After(timeout / 20):
			}
		}
	})
}
