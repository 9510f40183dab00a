package grpcresolver_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/grpcresolver"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// inVirtualTime runs a test with two clients, each on a way of its own.
func inVirtualTime(t *testing.T, test func(t *testing.T, place testenv.Place, reader, writer *framework.Client)) {
	t.Helper()
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		test(t, one, testclient.ConnectAt(t, one, chroot, patient()...), testclient.ConnectAt(t, two, chroot, patient()...))
	})
}

func TestConnectionFollowsItsService(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		c := build(t, discover(t, reader))
		c.await()
		a := orders("a", 80)
		a.Payload = "one"
		testclient.Must(t, d.Register(ctx, a))
		state := c.await("a")
		if got := state.Endpoints[0].Addresses[0].Addr; got != "10.0.0.7:80" {
			t.Errorf("the address is %s", got)
		}
		old := state.Addresses[0].BalancerAttributes //nolint:staticcheck // some policies still look there
		if got, ok := grpcresolver.InstanceOf[string](old); !ok || !got.Equal(a) {
			t.Errorf("the address has the instance %+v", got)
		}
		if _, ok := grpcresolver.InstanceOf[int](state.Endpoints[0].Attributes); ok {
			t.Error("a payload of another type")
		}
		if _, ok := grpcresolver.InstanceOf[string](nil); ok {
			t.Error("an instance of no attributes")
		}
		testclient.Must(t, d.Register(ctx, orders("b", 81)))
		c.await("a", "b")
		a.Payload = "two"
		testclient.Must(t, d.Update(ctx, a))
		testenv.Eventually(t, func() bool {
			states, _ := c.seen()
			return slices.ContainsFunc(states[len(states)-1].Endpoints, func(e resolver.Endpoint) bool {
				i, _ := grpcresolver.InstanceOf[string](e.Attributes)
				return i.Payload == "two"
			})
		}, "the new payload is seen")
		a.Disabled = true
		testclient.Must(t, d.Update(ctx, a))
		c.await("b")
		testclient.Must(t, d.Unregister(ctx, orders("b", 81)))
		if state := c.await(); state.Endpoints == nil {
			t.Error("no endpoints are those of the addresses")
		}
		if _, errs := c.seen(); len(errs) > 0 {
			t.Errorf("errors: %v", errs)
		}
	})
}

// What cannot be called is no address, and its changes are none.
func TestInstancesThatCannotBeCalledAreLeftOut(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		plain := build(t, discover(t, reader))
		plain.await()
		secure := build(t, discover(t, reader), grpcresolver.WithSSLPort())
		secure.await()
		for _, id := range []string{"disabled", "no address", "no port", "secure"} {
			i := orders(id, 80)
			i.SSLPort = 81
			switch id {
			case "disabled":
				i.Disabled = true
			case "no address":
				i.Address = ""
			case "no port":
				i.Port, i.SSLPort = 0, 0
			case "secure":
				i.Port = 0
			}
			testclient.Must(t, d.Register(ctx, i))
		}
		_, err := writer.Create().ForPath(ctx, base+"/orders/broken", []byte("{"))
		testclient.Must(t, err)
		testclient.Must(t, d.Register(ctx, orders("last", 82)))
		plain.await("last")
		if got := secure.await("secure").Endpoints[0].Addresses[0].Addr; got != "10.0.0.7:81" {
			t.Errorf("the address is %s", got)
		}
		if states, _ := plain.seen(); len(states) != 2 {
			t.Errorf("%d states, not 2", len(states))
		}
	})
}

func TestWeights(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		c := build(t, discover(t, reader), grpcresolver.WithWeight(func(i instance) uint32 { return uint32(i.Port) - 80 }))
		for n, id := range []string{"none", "one", "two"} {
			testclient.Must(t, d.Register(ctx, orders(id, 80+n)))
		}
		for _, e := range c.await("one", "two").Endpoints {
			i, _ := grpcresolver.InstanceOf[string](e.Attributes)
			if got := weight.FromEndpoint(e).Weight; got != uint32(i.Port)-80 {
				t.Errorf("%s has the weight %d", i.ID, got)
			}
		}
	})
}

// A weight that fails leaves out its instance alone, and gRPC gets the reason.
func TestWeightThatFailsLeavesItsInstanceOut(t *testing.T) {
	for how, fail := range map[string]func(){"panics": func() { panic("on purpose") }, "exits": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
				ctx, d := testenv.Context(t), discover(t, writer)
				calls := make(chan string, 100)
				c := build(t, discover(t, reader), grpcresolver.WithWeight(func(i instance) uint32 {
					if calls <- i.ID; i.ID == "bad" {
						fail()
					}
					return 7
				}))
				testclient.Must(t, d.Register(ctx, orders("bad", 80)))
				testenv.Eventually(t, func() bool {
					_, errs := c.seen()
					return slices.ContainsFunc(errs, func(err error) bool {
						return strings.Contains(err.Error(), "instance bad") && strings.Contains(err.Error(), "the weight")
					})
				}, "the error is reported")
				testclient.Must(t, d.Register(ctx, orders("a", 81)))
				c.await("a")
				testclient.Must(t, d.Register(ctx, orders("b", 82)))
				c.await("a", "b")
				if len(calls) != 3 {
					t.Errorf("weight is called %d times for 3 instances", len(calls))
				}
			})
		})
	}
}

// A weight that blocks holds up its connection, and neither the end of that nor another one.
func TestWeightThatBlocksHoldsUpItsConnectionAlone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		release, entered := make(chan struct{}), make(chan struct{}, 1)
		defer close(release)
		found := discover(t, reader)
		c := &conn{t: t}
		stop := c.build(found, grpcresolver.WithWeight(func(i instance) uint32 {
			if i.ID == "b" {
				entered <- struct{}{}
				<-release
			}
			return 1
		}))
		other := build(t, found)
		testclient.Must(t, d.Register(ctx, orders("a", 80)))
		c.await("a")
		testclient.Must(t, d.Register(ctx, orders("b", 81)))
		<-entered
		other.await("a", "b")
		stop()
	})
}

// A server that comes back on its port has two nodes until its old session has ended.
func TestOfTwoInstancesWithOneAddressTheNewerCounts(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		c := build(t, discover(t, reader))
		now := time.UnixMilli(1_800_000_000_000)
		for n, id := range []string{"b", "a", "c"} {
			i := orders(id, 80)
			i.RegistrationTime = now.Add(time.Duration(n%2) * time.Hour) // a is the newest
			testclient.Must(t, d.Register(ctx, i))
		}
		testclient.Must(t, d.Register(ctx, orders("last", 81)))
		c.await("a", "last")
		testclient.Must(t, d.Unregister(ctx, orders("a", 80)))
		testclient.Must(t, d.Unregister(ctx, orders("c", 80)))
		c.await("b", "last")
	})
}

func TestOrderOfTheAddressesStays(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d, read := testenv.Context(t), discover(t, writer), discover(t, reader)
		var ids []string
		for n := range 20 {
			ids = append(ids, fmt.Sprintf("%02d", n))
			testclient.Must(t, d.Register(ctx, orders(ids[n], 80+n)))
		}
		c := build(t, read)
		before := c.await(ids...).Addresses
		testclient.Must(t, d.Unregister(ctx, orders("07", 87)))
		after := c.await(slices.Delete(slices.Clone(ids), 7, 8)...).Addresses
		testclient.Must(t, d.Register(ctx, orders("07", 87)))
		last := c.await(ids...).Addresses
		other := build(t, read).await(ids...).Addresses
		names := func(addresses []resolver.Address) (names []string) {
			for _, a := range addresses {
				names = append(names, a.Addr)
			}
			return names
		}
		if diff := cmp.Diff(names(before), names(last)); diff != "" {
			t.Errorf("the order has changed:\n%s", diff)
		}
		without := slices.DeleteFunc(names(before), func(name string) bool { return name == "10.0.0.7:87" })
		if diff := cmp.Diff(without, names(after)); diff != "" {
			t.Errorf("the order has changed:\n%s", diff)
		}
		if slices.Equal(names(before), names(other)) { // once in 20!
			t.Error("two connections have the same order")
		}
	})
}

// No state in between has fewer instances.
func TestAddressesStayThroughOutages(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, place testenv.Place, reader, writer *framework.Client) {
		ctx, d := testenv.Context(t), discover(t, writer)
		c := build(t, discover(t, reader))
		ids := []string{"0"}
		testclient.Must(t, d.Register(ctx, orders("0", 80)))
		c.await("0")
		for n, outage := range []func(){
			func() { place.Faults().CutAll() },
			func() { place.Faults().KillSession(reader.SessionID()) },
			func() { testclient.Must(t, reader.Reset()) },
			func() {
				restore := place.Faults().RefuseConnects()
				place.Faults().CutAll()
				longer, cancel := context.WithTimeout(ctx, 2*testenv.SessionTimeout)
				defer cancel()
				_, _ = reader.CheckExists().ForPath(longer, "/") // which is the wait
				restore()
			},
		} {
			again := reconnected(reader)
			outage()
			id := fmt.Sprint(n + 1)
			testclient.Must(t, d.Register(ctx, orders(id, 81+n)))
			<-again
			ids = append(ids, id)
			c.await(ids...)
		}
		checkGrowing(t, c)
	})
}

func TestAddressesStayWhileTheServerRestarts(t *testing.T) {
	t.Parallel()
	testenv.OnOwnServer(t, func(t *testing.T, server testenv.Instance, dial testenv.Dial) {
		ctx := testenv.Context(t)
		opts := append(patient(), framework.WithDialer(dial))
		d := discover(t, testclient.Connect(t, server.ConnectString(), opts...))
		c := build(t, discover(t, testclient.Connect(t, server.ConnectString(), opts...)))
		ids := []string{"0"}
		testclient.Must(t, d.Register(ctx, orders("0", 80)))
		c.await("0")
		for n := range 3 {
			testclient.Must(t, server.Stop())
			testclient.Must(t, server.Restart())
			id := fmt.Sprint(n + 1)
			testclient.Must(t, d.Register(ctx, orders(id, 81+n)))
			ids = append(ids, id)
			c.await(ids...)
		}
		checkGrowing(t, c)
	})
}

// checkGrowing checks that no state behind the first with an instance has fewer than the one before, and that no error
// was reported.
func checkGrowing(t *testing.T, c *conn) {
	t.Helper()
	states, errs := c.seen()
	for i, state := range states[1:] {
		if len(state.Endpoints) < len(states[i].Endpoints) {
			t.Errorf("%v follow %v", idsOf(state), idsOf(states[i]))
		}
	}
	if len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
}

func TestBuildBeforeTheServerIsThere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, place testenv.Place, reader, writer *framework.Client) {
		d := discover(t, writer)
		testclient.Must(t, d.Register(testenv.Context(t), orders("a", 80)))
		restore := place.Faults().RefuseConnects()
		place.Faults().CutAll()
		read := discovery.New[string](reader, base)
		c := build(t, read, grpcresolver.WithLoadTimeout(100*time.Millisecond))
		c.awaitError(discovery.ErrNotStarted)
		testclient.Must(t, read.Start())
		t.Cleanup(func() { _ = read.Close(context.WithoutCancel(t.Context())) })
		testenv.Eventually(t, func() bool {
			_, errs := c.seen()
			return errs[len(errs)-1].Error() == `grpcresolver: service "orders": no answer from ZooKeeper yet`
		}, "the outage is reported")
		restore()
		c.await("a")
		states, errs := c.seen()
		if len(states) != 1 {
			t.Errorf("%d states, not one", len(states))
		}
		testclient.Must(t, d.Register(testenv.Context(t), orders("b", 81)))
		c.await("a", "b")
		if _, now := c.seen(); len(now) != len(errs) {
			t.Errorf("errors behind the first state: %v", now[len(errs):])
		}
	})
}

func TestBuildBeforeTheClientIsStarted(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		writer := testclient.ConnectAt(t, two, chroot, patient()...)
		testclient.Must(t, discover(t, writer).Register(testenv.Context(t), orders("a", 80)))
		reader := testclient.New(t, one.Addr()+chroot, append(patient(), framework.WithDialer(one.DialContext))...)
		c := build(t, discover(t, reader), grpcresolver.WithLoadTimeout(100*time.Millisecond))
		c.awaitError(framework.ErrNotStarted)
		testclient.Must(t, reader.Start())
		c.await("a")
	})
}

func TestServiceThatCannotBeReadIsReported(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx := testenv.Context(t)
		nobody, everybody := []zk.ACL{{Perms: zk.PermAdmin, Scheme: "world", ID: "anyone"}}, zk.WorldACL(zk.PermAll)
		_, err := writer.Create().CreatingParentsIfNeeded().WithACL(nobody...).ForPath(ctx, base+"/orders", nil)
		testclient.Must(t, err)
		c := build(t, discover(t, reader), grpcresolver.WithLoadTimeout(100*time.Millisecond))
		c.awaitError(zk.ErrNoAuth)
		_, err = writer.SetACL().WithACL(everybody...).ForPath(ctx, base+"/orders")
		testclient.Must(t, err)
		c.await()
		testclient.Must(t, discover(t, writer).Register(ctx, orders("a", 80)))
		c.await("a")
	})
}

// A cache that is closed is empty.
func TestAddressesStayWhenTheDiscoveryIsClosed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		ctx, d, read := testenv.Context(t), discover(t, writer), discover(t, reader)
		testclient.Must(t, d.Register(ctx, orders("a", 80)))
		c := &conn{t: t, hold: make(chan struct{})}
		t.Cleanup(c.build(read))
		c.await("a")

		cache := read.Cache("orders")
		testclient.Must(t, cache.Start(ctx))
		heard := make(chan struct{}, 10)
		cache.AddListener(func(context.Context, discovery.Change[string]) { heard <- struct{}{} })
		testclient.Must(t, d.Register(ctx, orders("b", 81)))
		<-heard
		testclient.Must(t, reader.Sync().ForPath(ctx, "/")) // the other cache has heard of it, too
		testclient.Must(t, read.Close(ctx))
		close(c.hold)
		build(t, read).awaitError(discovery.ErrClosed)
		states, errs := c.seen()
		if len(states) != 1 || len(errs) > 0 {
			t.Errorf("states %v, errors %v", states, errs)
		}
	})
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, _ *framework.Client) {
		c := &conn{t: t, hold: make(chan struct{})}
		stop := c.build(discover(t, reader))
		c.await()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			stop()
		}()
		select {
		case <-closed:
			t.Error("closed, and gRPC is called")
		case c.hold <- struct{}{}:
		}
		<-closed
	})
}

func TestInvalidServiceIsReported(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, _ *framework.Client) {
		d := discover(t, reader)
		for _, target := range []string{"zk:///", "zk:///a//b", "zk:///."} {
			c := &conn{t: t}
			r, err := grpcresolver.New(d).Build(targetOf(t, target), c, resolver.BuildOptions{})
			testclient.Must(t, err)
			c.awaitError(zk.ErrInvalidPath)
			r.Close()
		}
	})
}

func TestBadArgumentsOfABuilder(t *testing.T) {
	d := discovery.New[string](nil, base)
	other := func(discovery.ServiceInstance[int]) uint32 { return 1 }
	for name, b := range map[string]resolver.Builder{
		"zk:///orders":          grpcresolver.New(d, grpcresolver.WithLoadTimeout(0)),
		"zk:///orders?":         grpcresolver.New(d, grpcresolver.WithWeight(other)),
		"zk://orders":           grpcresolver.New(d),
		"zk://10.0.0.7/orders?": grpcresolver.New(d),
	} {
		if b.Scheme() != "zk" {
			t.Errorf("the scheme is %q", b.Scheme())
		}
		_, err := b.Build(targetOf(t, name), &conn{t: t}, resolver.BuildOptions{})
		wantErr(t, err, framework.ErrBadArguments)
	}
}
