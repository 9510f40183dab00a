package desired_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func newClient(tb testing.TB) *framework.Client {
	tb.Helper()
	server := curatortest.NewServerT(tb, curatortest.WithoutPort())
	return testclient.Connect(tb, server.ConnectString(), framework.WithDialer(server.DialContext))
}

func spec(client *framework.Client, path string) desired.Spec {
	return desired.Spec{Client: client, Path: path, Mode: builders.Ephemeral, Data: []byte("data")}
}

func ignore(desired.Event) {}

func TestReconcilerIsThatOfAllViews(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	one := desired.Of(client)
	if desired.Of(client.UsingNamespace("a")) != one || desired.Of(newClient(t)) == one {
		t.Error("not one for each client")
	}
}

// The goroutine and the listener live while there is a node.
func TestReconcilerEndsWithItsLastNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		listeners := hook.StateListeners(client)
		r := desired.Of(client)
		for range 3 {
			var all []*desired.Node
			for i := range 10 {
				n, err := r.Add(spec(client, fmt.Sprintf("/n/%d", i)), ignore)
				testclient.Must(t, err)
				all = append(all, n)
			}
			for _, n := range all {
				testclient.Must(t, n.AwaitCreated(t.Context()))
			}
			if got := hook.StateListeners(client); got != listeners+1 {
				t.Errorf("%d listeners, %d before", got, listeners)
			}
			for _, n := range all {
				testclient.Must(t, n.Remove(t.Context()))
			}
			synctest.Wait()
			if got := hook.StateListeners(client); got != listeners {
				t.Errorf("%d listeners are left, %d before", got, listeners)
			}
		}
		if watches := client.Health().Watches; watches != 0 {
			t.Errorf("%d watches are left", watches)
		}
	})
}

// A node that is desired again while the last one is removed takes its place.
func TestReconcilerAddWhileRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		r := desired.Of(client)
		for _, op := range []string{"create", "multi", "getData"} {
			one, err := r.Add(spec(client, "/n/a"), ignore)
			testclient.Must(t, err)
			testclient.Must(t, one.AwaitCreated(t.Context()))
			held := server.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: curatortest.HoldRequest, MayMiss: true})
			removed := make(chan error, 1)
			go func() { removed <- one.Remove(t.Context()) }()
			<-time.After(time.Second)
			two, err := r.Add(spec(client, "/n/a"), ignore)
			testclient.Must(t, err)
			testclient.Must(t, <-removed)
			held.Remove()
			testclient.Must(t, two.AwaitCreated(t.Context()))
			<-time.After(time.Second)
			if node, ok := server.Node("/n/a"); !ok || node.Stat.EphemeralOwner != client.SessionID() || !two.State().Present {
				t.Errorf("%s: %+v, %+v", op, node, two.State())
			}
			testclient.Must(t, two.Remove(t.Context()))
			if _, ok := server.Node("/n/a"); ok {
				t.Errorf("%s: left", op)
			}
		}
	})
}

// A read that sets a watch, and is answered when its node is not desired any more, leaves no watch.
func TestReconcilerRemovesWatchOfNodeThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/n/a", nil)
		testclient.Must(t, err)
		held := server.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldRequest})
		kept := spec(client, "/n/a")
		kept.Mode, kept.Keep = builders.Persistent, true
		n, err := desired.Of(client).Add(kept, ignore)
		testclient.Must(t, err)
		synctest.Wait() // the read is under way
		testclient.Must(t, n.Remove(t.Context()))
		held.Remove()
		<-time.After(time.Second)
		if watches := client.Health().Watches; watches != 0 {
			t.Errorf("%d watches are left", watches)
		}
	})
}

// A desired node takes at most a kilobyte beyond its bytes. The client has no server, which would keep its nodes in the
// same heap.
func TestReconcilerMemoryOfNode(t *testing.T) { //nolint:paralleltest // it measures the memory
	const count = 10000
	client := testclient.New(t, "127.0.0.1:1")
	r := desired.Of(client)
	paths := make([]string, count)
	for i := range paths {
		paths[i] = fmt.Sprintf("/members/%05d", i)
	}
	before := heap()
	for _, path := range paths {
		s := spec(client, path)
		s.Data = nil
		if _, err := r.Add(s, ignore); err != nil {
			t.Fatal(err)
		}
	}
	if perNode := (heap() - before) / count; perNode > 1024 {
		t.Errorf("a node takes %d bytes", perNode)
	} else {
		t.Logf("a node takes %d bytes", perNode)
	}
	runtime.KeepAlive(paths)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
