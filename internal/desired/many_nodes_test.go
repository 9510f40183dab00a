package desired_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// keeper keeps nodes, and fails its test if they do not come to be.
type keeper struct {
	*testing.T
	client *framework.Client
	all    []*desired.Node
}

func (k *keeper) add(specs ...desired.Spec) {
	k.Helper()
	all, err := desired.Of(k.client).AddAll(specs, func(int, desired.Event) {})
	testclient.Must(k, err)
	k.all = append(k.all, all...)
}

func (k *keeper) awaitCreated() {
	k.Helper()
	for _, n := range k.all {
		testclient.Must(k, n.AwaitCreated(k.Context()))
	}
}

// A process may keep thousands of nodes: a registrar of services has one below each of as many parents. The nodes at
// which all plans look are counted, each time: a node costs no more among 800 than among 100.
func TestReconcilerCostOfNodeDoesNotDependOnNumber(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(k *keeper, count int){
		"each below a missing parent": func(k *keeper, count int) {
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/%05d/a", i)))
			}
			k.awaitCreated()
		},
		"all below a missing parent": func(k *keeper, count int) {
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/a/%05d", i)))
			}
			k.awaitCreated()
		},
		"each below another one, with a TTL": func(k *keeper, count int) {
			for i := range count / 2 {
				path := fmt.Sprintf("/services/%05d", i)
				above, below := spec(k.client, path), spec(k.client, path+"/touch")
				above.Mode, below.Mode = builders.Container, builders.PersistentWithTTL
				below.TTL, below.Touch = time.Hour, time.Minute
				k.add(above, below)
			}
			k.awaitCreated()
			<-time.After(5 * time.Minute)
		},
		"all refused at first": func(k *keeper, count int) {
			_, err := k.client.Create().WithACL(zk.WorldACL(zk.PermRead)...).ForPath(k.Context(), "/closed", nil)
			testclient.Must(k, err)
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/closed/%05d", i)))
			}
			<-time.After(5 * time.Minute)
			testclient.Must(k, k.client.Delete().ForPath(k.Context(), "/closed"))
			k.awaitCreated()
		},
		"whose parents are refused": func(k *keeper, count int) {
			_, err := k.client.Create().WithACL(zk.WorldACL(zk.PermRead)...).ForPath(k.Context(), "/closed", nil)
			testclient.Must(k, err)
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/closed/a/%05d", i)))
			}
			<-time.After(5 * time.Minute)
			testclient.Must(k, k.client.Delete().ForPath(k.Context(), "/closed"))
			k.awaitCreated()
		},
		"of two sessions, then removed": func(k *keeper, count int) {
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/%05d/a", i)))
			}
			k.awaitCreated()
			testclient.Must(k, k.client.Reset())
			<-time.After(time.Minute)
			for _, n := range k.all {
				if !n.State().Present {
					k.Errorf("%+v", n.State())
				}
				testclient.Must(k, n.Remove(k.Context()))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var costs []int // of a node
			for _, count := range []int{100, 800} {
				synctest.Test(t, func(t *testing.T) {
					k := &keeper{T: t, client: newClient(t)}
					keep(k, count)
					costs = append(costs, desired.Of(k.client).Steps()/count)
				})
			}
			t.Logf("a node is looked at %d times among 100, %d times among 800", costs[0], costs[1])
			limit := 50 // one that is refused is looked at behind each pause of another one
			if strings.Contains(name, "refused") {
				limit = 1000
			}
			if costs[1] > min(2*costs[0]+2, limit) {
				t.Errorf("a node is looked at %d times among 100, %d times among 800", costs[0], costs[1])
			}
		})
	}
}
