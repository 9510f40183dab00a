package desired_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

type fixedACL struct{}

func (fixedACL) DefaultACL() []zk.ACL       { return nil }
func (fixedACL) ACLForPath(string) []zk.ACL { return zk.WorldACL(zk.PermAll) }

// A node costs no more among 1000 than among 100, also a TTL node that a process before this one has left, which is
// touched at once.
func TestReconcilerNodeCostsNoMoreAmongMany(t *testing.T) {
	ttl := func(client *framework.Client, i int) []desired.Spec {
		path := fmt.Sprintf("/services/%05d", i)
		above, below := spec(client, path), spec(client, path+"/touch")
		above.Mode, below.Mode = builders.Container, builders.PersistentWithTTL
		below.TTL, below.Touch, below.Keep, above.Keep = time.Hour, time.Minute, true, true
		return []desired.Spec{above, below}
	}
	flat := func(client *framework.Client, i int) desired.Spec {
		s := spec(client, fmt.Sprintf("/flat/%05d", i))
		s.Mode, s.TTL, s.Touch, s.Keep = builders.PersistentWithTTL, time.Hour, time.Minute, true
		return s
	}
	for name, keep := range map[string]func(t *testing.T, client, other *framework.Client, count int){
		"adopted TTL nodes, each below another": func(t *testing.T, client, other *framework.Client, count int) {
			k := &keeper{T: t, client: other}
			for i := range count {
				k.add(ttl(other, i)...)
			}
			k.awaitCreated()
			testclient.Must(t, other.Close())
			k = &keeper{T: t, client: client}
			for i := range count {
				k.add(ttl(client, i)...)
			}
			k.awaitCreated()
			<-time.After(10 * time.Second)
		},
		"adopted TTL nodes of one parent": func(t *testing.T, client, other *framework.Client, count int) {
			k := &keeper{T: t, client: other}
			for i := range count {
				k.add(flat(other, i))
			}
			k.awaitCreated()
			testclient.Must(t, other.Close())
			k = &keeper{T: t, client: client}
			for i := range count {
				k.add(flat(client, i))
			}
			k.awaitCreated()
			<-time.After(10 * time.Second)
		},
		"TTL nodes, two sessions": func(t *testing.T, client, _ *framework.Client, count int) {
			k := &keeper{T: t, client: client}
			for i := range count {
				k.add(ttl(client, i)...)
			}
			k.awaitCreated()
			testclient.Must(t, k.client.Reset())
			<-time.After(10 * time.Second)
		},
		"ephemeral, each deleted by others one by one": func(t *testing.T, client, other *framework.Client, count int) {
			k := &keeper{T: t, client: client}
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/%05d/a", i)))
			}
			k.awaitCreated()
			for i := range count {
				testclient.Must(t, other.Delete().ForPath(t.Context(), fmt.Sprintf("/services/%05d/a", i)))
			}
			<-time.After(10 * time.Second)
		},
		"ephemeral, registered and removed": func(t *testing.T, client, _ *framework.Client, count int) {
			k := &keeper{T: t, client: client}
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/%05d/a", i)))
			}
			k.awaitCreated()
			for _, n := range k.all {
				testclient.Must(t, n.Remove(t.Context()))
			}
		},
		"ephemeral of one parent, removed at once": func(t *testing.T, client, _ *framework.Client, count int) {
			k := &keeper{T: t, client: client}
			for i := range count {
				k.add(spec(k.client, fmt.Sprintf("/services/a/%05d", i)))
			}
			k.awaitCreated()
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for _, n := range k.all {
				_ = n.Remove(ended)
			}
			for _, n := range k.all {
				<-n.Gone()
			}
		},
	} {
		for _, provider := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, provider %v", name, provider), func(t *testing.T) {
				var costs []int // of a node
				for _, count := range []int{100, 1000} {
					synctest.Test(t, func(t *testing.T) {
						server := curatortest.NewServerT(t, curatortest.WithoutPort())
						opts := []framework.Option{framework.WithDialer(server.DialContext)}
						if provider {
							opts = append(opts, framework.WithACLProvider(fixedACL{}))
						}
						client := testclient.Connect(t, server.ConnectString(), opts...)
						other := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
						keep(t, client, other, count)
						costs = append(costs, desired.Of(client).Steps()/count)
					})
				}
				if costs[1] > min(2*costs[0]+2, 100) {
					t.Errorf("a node is looked at %d times among 100, %d times among 1000", costs[0], costs[1])
				}
			})
		}
	}
}
