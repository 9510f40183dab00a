package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// cacheOf returns a started cache of the service "orders".
func (s *scene) cacheOf() *discovery.ServiceCache[string] {
	s.Helper()
	c := s.discover(s.reader).Cache("orders")
	s.must(c.Start(s.ctx))
	return c
}

func TestCacheIsReadyWhenStartReturns(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "b", "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		c := s.cacheOf()
		if diff := cmp.Diff([]string{"a", "b"}, ids(c.Instances())); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
		s.wantErr(c.Start(s.ctx), discovery.ErrStarted)
	})
}

func TestCacheOfAServiceThatComesLater(t *testing.T) {
	inScene(t, func(s *scene) {
		c := s.cacheOf()
		if got := c.Instances(); len(got) > 0 {
			t.Errorf("instances %v", got)
		}
		d := s.discover(s.client)
		s.register(d, "a")
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 1 }, "the cache has it")
		s.must(d.Unregister(s.ctx, orders("a", "")))
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 0 }, "the cache has it no more")
		s.register(d, "b") // the container may have gone
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 1 }, "the cache has the next one")
		s.must(c.Err())
	})
}

func TestCacheStartBoundedByItsContextGoesOn(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.reader), "a")
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		c := s.discover(s.client).Cache("orders")
		short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
		defer cancel()
		s.wantErr(c.Start(short), context.DeadlineExceeded)
		restore()
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 1 }, "the cache has it")
	})
}

func TestCacheChangesAreASnapshotAndWhatFollows(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		c := s.cacheOf()
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		var got []string
		for change := range c.Changes(ctx) {
			i := change.Instance
			got = append(got, fmt.Sprintf("%s %s %t %t", i.ID, i.Payload, change.Gone, change.Err != nil))
			switch len(got) {
			case 1:
				s.must(d.Register(s.ctx, orders("b", "b")))
			case 2:
				s.must(d.Update(s.ctx, orders("b", "c")))
			case 3:
				s.must(d.Unregister(s.ctx, orders("a", "")))
			case 4:
				_, err := s.client.Create().ForPath(s.ctx, base+"/orders/x", []byte("{"))
				s.must(err)
			case 5:
				cancel()
			}
		}
		want := []string{"a a false false", "b b false false", "b c false false", "a a true false", "  false true"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("changes:\n%s", diff)
		}
	})
}

// What was asked before does not hide what Sync has waited for.
func TestCacheHasWhatSyncWaitedFor(t *testing.T) {
	inScene(t, func(s *scene) {
		d, c := s.discover(s.client), s.cacheOf()
		for n := range 50 {
			if got := len(c.Instances()); got != n {
				t.Fatalf("%d instances before the next one, want %d", got, n)
			}
			s.register(d, fmt.Sprint(n))
			s.must(c.Sync(s.ctx))
			if got := len(c.Instances()); got != n+1 {
				t.Fatalf("%d instances behind Sync, want %d", got, n+1)
			}
		}
	})
}

// A listener that blocks, or panics, holds up neither the instances nor other caches.
func TestCacheListenerThatBlocksHoldsUpNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		c := s.cacheOf()
		entered, blocked := make(chan struct{}, 10), make(chan struct{})
		remove := c.AddListener(func(ctx context.Context, _ discovery.Change[string]) {
			entered <- struct{}{}
			<-ctx.Done()
			close(blocked)
		})
		defer remove()
		d := s.discover(s.client)
		s.register(d, "a")
		<-entered
		s.register(d, "b")
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 2 }, "the cache has the second one")
		s.must(c.Close())
		<-blocked
		if len(entered) > 0 {
			t.Error("a listener is called behind Close")
		}
		_, found := s.reader, c.Instances()
		if len(found) > 0 {
			t.Errorf("instances behind Close: %v", found)
		}
	})
}

func TestDrainDisablesBeforeItUnregisters(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b")
		c := s.cacheOf()
		seen := make(chan string, 10)
		c.AddListener(func(_ context.Context, change discovery.Change[string]) {
			seen <- fmt.Sprintf("%s %t %t", change.Instance.ID, change.Instance.Disabled, change.Gone)
		})
		draining, end := context.WithCancel(s.ctx)
		defer end()
		drained := make(chan error, 1)
		go func() { drained <- d.Drain(draining, orders("a", "a"), time.Hour) }()
		if got := <-seen; got != "a true false" {
			t.Errorf("the first change is %s", got)
		}
		end() // of the pause: behind a short one the cache may see both changes as one
		s.wantErr(<-drained, context.Canceled)
		if got := <-seen; got != "a true true" {
			t.Errorf("the second change is %s", got)
		}
		s.wantErr(d.Drain(s.ended(), orders("b", "b"), time.Hour), context.Canceled)
		for got := ""; got != "b true true" && got != "b false true"; {
			got = <-seen
		}
	})
}

func TestDrainOfAnotherProcessLeavesItsInstance(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		s.wantErr(s.discover(s.reader).Drain(s.ctx, orders("a", "a"), time.Hour), discovery.ErrNotRegistered)
		if stat := s.stat(pathOf(orders("a", ""))); stat == nil || stat.Version > 0 {
			t.Errorf("the node is %+v", stat)
		}
	})
}

// A drain that cannot be says so once, and unregisters nothing.
func TestDrainOfADiscoveryThatDoesNotRun(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		for _, want := range []error{discovery.ErrNotStarted, discovery.ErrNotRegistered, discovery.ErrClosed} {
			err := d.Drain(s.ctx, orders("a", "a"), time.Hour)
			if s.wantErr(err, want); err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("several errors: %v", err)
			}
			if want == discovery.ErrNotStarted {
				s.must(d.Start())
			} else {
				s.must(d.Close(s.ctx))
			}
		}
	})
}

func TestRegisterThatIsUnregisteredMeanwhile(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.reader), "a")
		d := s.discover(s.client)
		held := s.place.Faults().Add(curatortest.Rule{
			Path: s.chroot + pathOf(orders("a", "")), Action: curatortest.HoldRequest, Count: 1,
		})
		done := make(chan error, 1)
		go func() { done <- d.Register(s.ctx, orders("a", "ours")) }()
		s.must(held.Wait(s.ctx)) // it is under way, ahead of those below
		held.Release()
		testenv.Eventually(s, func() bool {
			short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
			defer cancel()
			return errors.Is(d.Register(short, orders("a", "ours")), discovery.ErrForeign)
		}, "Register waits for the other session")
		s.must(d.Unregister(s.ctx, orders("a", "")))
		s.wantErr(<-done, discovery.ErrNotRegistered)
	})
}

func TestRegisterRefusedByTheServersEnds(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, path := range []string{base, base + "/orders"} {
			_, err := s.reader.Create().ForPath(s.ctx, path, nil)
			s.must(err)
		}
		_, err := s.reader.SetACL().WithACL(zk.WorldACL(zk.PermRead|zk.PermAdmin)...).ForPath(s.ctx, base+"/orders")
		s.must(err)
		d := s.discover(s.client)
		s.wantErr(d.Register(s.ctx, orders("a", "one")), zk.ErrNoAuth)
		_, err = s.reader.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, base+"/orders")
		s.must(err)
		s.awaitPayload(orders("a", "one"))
	})
}

// ZKPaths.makePath of Java takes a slash from either end of a name. The instance keeps the name that it has.
func TestBasePathWithoutSlashOrWithSlashAtItsEndIsThatOfJava(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, path := range []string{"relative", "/trailing/", "relative/trailing/"} {
			d := discovery.New[string](s.client, path)
			s.must(d.Start())
			s.must(d.Register(s.ctx, orders("a", "one")))
			if at := "/" + strings.Trim(path, "/") + "/orders/a"; s.stat(at) == nil {
				t.Errorf("%q: %s is not there", path, at)
			}
			s.must(d.Close(s.ctx))
		}
	})
}

func TestServiceWhoseNameHasSlashesAtItsEnds(t *testing.T) {
	inScene(t, func(s *scene) {
		for n, name := range []string{"/orders", "orders/", "/orders/", "/org/orders/"} {
			d, id := s.discover(s.client), strconv.Itoa(n)
			i := orders("/"+id+"/", "one")
			i.Name = name
			s.must(d.Register(s.ctx, i))
			path := base + "/" + strings.Trim(name, "/") + "/" + id
			if s.stat(path) == nil {
				t.Errorf("%q: %s is not there", name, path)
			}
			i.Payload = "two"
			s.must(d.Update(s.ctx, i))
			got, err := d.Instance(s.ctx, strings.Trim(name, "/"), i.ID)
			if s.must(err); got.Name != name || got.ID != i.ID || got.Payload != "two" {
				t.Errorf("%q: the node has %+v", name, got)
			}
			p := d.Provider(name)
			s.must(p.Start(s.ctx))
			s.awaitAll(p, 1)
			s.must(d.Unregister(s.ctx, i))
			s.awaitNothing(path)
		}
	})
}

func TestServiceWhoseNameIsAPath(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		i := orders("a", "one")
		i.Name = "org/acme/orders"
		s.must(d.Register(s.ctx, i))
		s.awaitPayload(i)
		c := s.discover(s.reader).Cache(i.Name)
		s.must(c.Start(s.ctx))
		if diff := cmp.Diff([]string{"a"}, ids(c.Instances())); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
	})
}

func TestNamesAndBadArguments(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		names, err := d.Names(s.ctx)
		if s.must(err); len(names) > 0 {
			t.Errorf("names %v", names)
		}
		for _, name := range []string{"b", "a"} {
			i := orders("1", "")
			i.Name = name
			s.must(d.Register(s.ctx, i))
		}
		names, err = d.Names(s.ctx)
		s.must(err)
		if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
			t.Errorf("names:\n%s", diff)
		}
		for _, bad := range []order{
			{},
			{Name: "a"},
			{ID: "a"},
			{Name: "/", ID: "a"},
			{Name: "//a", ID: "a"},
			{Name: "a//", ID: "a"},
			{Name: "a", ID: "/"},
			{Name: "a", ID: ".."},
			{Name: "a", ID: "a/b"},
		} {
			for what, err := range map[string]error{
				"register": d.Register(s.ctx, bad), "update": d.Update(s.ctx, bad), "unregister": d.Unregister(s.ctx, bad),
			} {
				if err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s %+v: %v", what, bad, err)
				}
			}
		}
		i := orders("1", "")
		i.Name, i.Type = "a", discovery.Static
		if err := d.Register(s.ctx, i); err == nil {
			t.Error("an instance changes its type")
		}
		late := discovery.New[string](s.client, base)
		s.wantErr(late.Register(s.ctx, orders("x", "")), discovery.ErrNotStarted)
		if err := discovery.New[string](s.client, "no//path").Start(); err == nil {
			t.Error("a base path that is none")
		}
		twice := s.discover(s.client)
		i.Type = discovery.Dynamic
		s.wantErr(twice.Register(s.ctx, i), discovery.ErrInUse)
	})
}

// countingSerializer counts how often it decodes.
type countingSerializer struct {
	discovery.InstanceSerializer[string]
	decoded atomic.Int32
}

func (s *countingSerializer) Decode(data []byte) (order, error) {
	s.decoded.Add(1)
	return s.InstanceSerializer.Decode(data)
}

func TestInstanceIsDecodedOnceWithoutListeners(t *testing.T) {
	inScene(t, func(s *scene) {
		plain, err := discovery.NewInstanceSerializer[string]()
		s.must(err)
		serializer := &countingSerializer{InstanceSerializer: plain}
		c := s.discover(s.reader, discovery.WithSerializer[string](serializer)).Cache("orders")
		s.must(c.Start(s.ctx))
		s.must(s.discover(s.client).Register(s.ctx, orders("7", "eu")))
		s.must(c.Sync(s.ctx))
		if n := len(c.Instances()); n != 1 {
			t.Errorf("the cache has %d instances", n)
		}
		if n := serializer.decoded.Load(); n != 1 {
			t.Errorf("the instance is decoded %d times", n)
		}
	})
}

// Somebody who has the log alone learns why an instance is not chosen, once for each change of its node.
func TestCacheReportsANodeThatIsNoInstance(t *testing.T) {
	inScene(t, func(s *scene) {
		unhandled := make(chan error, 10)
		s.reader = s.client // its connection is cut below
		s.reader.AddUnhandledErrorListener(func(_ context.Context, err framework.UnhandledError) { unhandled <- err.Err })
		d, c := s.discover(s.client), s.cacheOf()
		path := base + "/orders/x"
		s.register(d, "a")
		_, err := s.client.Create().ForPath(s.ctx, path, []byte("one"))
		s.must(err)
		for n, change := range []func(){
			func() {},
			func() { s.register(d, "b") },
			func() {
				_, err := s.client.SetData().ForPath(s.ctx, path, []byte("two"))
				s.must(err)
			},
			s.cut, // the cache looks at all nodes again
		} {
			change()
			s.must(c.Sync(s.ctx))
			for range 2 {
				if got := len(c.Entries()) - len(c.Instances()); got != 1 {
					t.Errorf("%d nodes are no instance", got)
				}
			}
			if n == 1 || n == 3 {
				continue // the node is as before
			}
			if err := <-unhandled; !strings.Contains(err.Error(), path) {
				t.Errorf("reported: %v", err)
			}
		}
		s.must(c.Close())
		s.must(s.reader.Close())
		if len(unhandled) > 0 {
			t.Errorf("reported: %v", <-unhandled)
		}
	})
}

// A server restored from a backup gives its transaction ids a second time: another instance comes with a known one.
func TestCacheOfServerRestoredFromBackupHasNewInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		must := func(err error) { testclient.Must(t, err) }
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		connect := func() *framework.Client {
			return testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		}
		write := func(address string) {
			<-time.After(time.Second)
			c := connect()
			data := fmt.Sprintf(`{"name":"orders","id":"x","address":%q,"port":1,"serviceType":"PERMANENT",`+
				`"registrationTimeUTC":1}`, address)
			_, err := c.Create().OrSetData().CreatingParentsIfNeeded().ForPath(ctx, base+"/orders/x", []byte(data))
			must(err)
			must(c.Close())
		}
		write("10.0.0.1")
		client := connect()
		backup := server.Snapshot()
		write("10.0.0.2")
		d := discovery.New[string](client, base)
		must(d.Start())
		defer d.Close(ctx)
		c := d.Cache("orders")
		must(c.Start(ctx))
		allow := server.Faults().RefuseConnects()
		server.Restore(backup)
		allow()
		write("10.0.0.3")
		<-time.After(time.Minute) // the client is in a new session
		must(c.Sync(ctx))
		if got := c.Instances(); len(got) != 1 || got[0].Address != "10.0.0.3" {
			t.Errorf("got %+v", got)
		}
	})
}
