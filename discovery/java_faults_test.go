package discovery_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// Each fault of Java's discovery has its number in the notes of the project, SD1 to SD14, and a test by that name.

// SD1: in Java a node that exists twice leaves nothing registered, and no error.
func TestSD1NodeOfAnotherSessionIsWaitedFor(t *testing.T) {
	inScene(t, func(s *scene) {
		theirs, ours := s.discover(s.reader), s.discover(s.client)
		s.must(theirs.Register(s.ctx, orders("a", "theirs")))
		testenv.Eventually(s, func() bool {
			short, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
			defer cancel()
			err := ours.Register(short, orders("a", "ours"))
			s.wantErr(err, context.DeadlineExceeded)
			return errors.Is(err, discovery.ErrForeign)
		}, "the error names the node of the other session")
		if stat := s.stat(pathOf(orders("a", ""))); stat == nil || stat.EphemeralOwner != s.reader.SessionID() {
			t.Errorf("the node of the other session is %+v", stat)
		}
		s.must(theirs.Unregister(s.ctx, orders("a", "")))
		s.awaitPayload(orders("a", "ours"))
	})
}

// SD2: in Java one instance that cannot be registered again keeps all that follow away.
func TestSD2RefusedInstanceHoldsUpNoOther(t *testing.T) {
	inScene(t, func(s *scene) {
		theirs, ours := s.discover(s.reader), s.discover(s.client)
		for _, id := range []string{"a", "b", "c"} {
			s.must(ours.Register(s.ctx, orders(id, "ours")))
		}
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		s.endSession(s.client.SessionID())
		for _, id := range []string{"a", "b", "c"} {
			s.awaitNothing(pathOf(orders(id, "")))
		}
		s.must(theirs.Register(s.ctx, orders("b", "theirs")))
		restore()
		s.awaitPayload(orders("a", "ours"))
		s.awaitPayload(orders("c", "ours"))
		s.must(theirs.Unregister(s.ctx, orders("b", "")))
		s.awaitPayload(orders("b", "ours"))
	})
}

// SD3: in Java each reconnect deletes the node and creates it.
func TestSD3ReconnectIsSeenByNobody(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, orders("a", "one")))
		seen := s.discover(s.reader).Cache("orders")
		s.must(seen.Start(s.ctx))
		changes := make(chan discovery.Change[string], 10)
		seen.AddListener(func(_ context.Context, c discovery.Change[string]) { changes <- c })
		before := s.stat(pathOf(orders("a", "")))
		for range 3 {
			s.cut()
			s.settle()
		}
		if diff := cmp.Diff(before, s.stat(pathOf(orders("a", "")))); diff != "" {
			t.Errorf("the node has changed:\n%s", diff)
		}
		s.must(d.Update(s.ctx, orders("a", "two")))
		if c := <-changes; c.Instance.Payload != "two" {
			t.Errorf("a reconnect is seen as %+v", c)
		}
	})
}

// SD4: in Java an instance that is unregistered beside a reconnect is there again.
func TestSD4UnregisteredInstanceStaysAway(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		i := orders("a", "one")
		for range 5 {
			s.must(d.Register(s.ctx, i))
			done := make(chan error, 1)
			go func() { done <- d.Unregister(s.ctx, i) }()
			s.expire()
			s.must(<-done)
			s.cut()
			s.settle()
			if stat := s.stat(pathOf(i)); stat != nil {
				t.Fatalf("it is there again: %+v", stat)
			}
		}
	})
}

// SD5: in Java unregistering an instance of another process does nothing.
func TestSD5InstanceOfAnotherProcessIsUnregistered(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		gone := orders("a", "theirs")
		gone.Type = discovery.Static
		registrar := discovery.New[string](s.reader, base)
		s.must(registrar.Start())
		s.must(registrar.Register(s.ctx, gone))
		s.must(registrar.Close(s.ctx))
		s.must(d.Unregister(s.ctx, gone))
		if stat := s.stat(pathOf(gone)); stat != nil {
			t.Errorf("it is still there: %+v", stat)
		}
		s.must(d.Unregister(s.ctx, gone)) // once more
	})
}

// SD6: in Java data that another process writes makes the registration that of another instance.
func TestSD6DataOfAnotherIsPutRight(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, orders("a", "ours")))
		_, err := s.reader.SetData().ForPath(s.ctx, pathOf(orders("a", "")), []byte(`{"name":"x","id":"b"}`))
		s.must(err)
		s.awaitPayload(orders("a", "ours"))
		s.must(d.Update(s.ctx, orders("a", "newer")))
		s.awaitPayload(orders("a", "newer"))
	})
}

// SD7: in Java an update of a node that is gone fails, and comes later.
func TestSD7UpdateOfAGoneNodeCreatesIt(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, orders("a", "one")))
		s.must(s.reader.Delete().ForPath(s.ctx, pathOf(orders("a", ""))))
		s.must(d.Update(s.ctx, orders("a", "two")))
		s.awaitPayload(orders("a", "two"))
		s.wantErr(d.Update(s.ctx, orders("b", "one")), discovery.ErrNotRegistered)
	})
}

// SD8: in Java a sequential instance can be neither unregistered nor asked for.
func TestSD8SequentialInstanceIsFoundByItsID(t *testing.T) {
	inScene(t, func(s *scene) {
		d, other := s.discover(s.client), s.discover(s.reader)
		for _, id := range []string{"a", "a-long-name", "a0000000007"} {
			i := orders(id, "of "+id)
			i.Type = discovery.DynamicSequential
			s.must(d.Register(s.ctx, i))
		}
		got, err := other.Instance(s.ctx, "orders", "a")
		s.must(err)
		if got.Payload != "of a" {
			t.Errorf("got %+v", got)
		}
		s.must(other.Unregister(s.ctx, got)) // of another process, which puts it there again
		testenv.Eventually(s, func() bool {
			_, err := other.Instance(s.ctx, "orders", "a")
			return err == nil
		}, "it is there again")
		s.must(d.Unregister(s.ctx, got))
		_, err = other.Instance(s.ctx, "orders", "a")
		s.wantErr(err, discovery.ErrNoInstance)
		s.wantErr(err, zk.ErrNoNode)
		all, err := other.Instances(s.ctx, "orders")
		s.must(err)
		if diff := cmp.Diff([]string{"a-long-name", "a0000000007"}, slices.Sorted(slices.Values(ids(all)))); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
	})
}

// SD9: in Java Close deletes static and permanent instances, too.
func TestSD9CloseLeavesStaticInstances(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		s.must(d.Start())
		for id, typ := range map[string]discovery.ServiceType{
			"a": discovery.Dynamic, "b": discovery.Static, "c": discovery.Permanent, "d": discovery.DynamicSequential,
		} {
			i := orders(id, id)
			i.Type = typ
			s.must(d.Register(s.ctx, i))
		}
		s.must(d.Close(s.ctx))
		left, err := s.discover(s.reader).Instances(s.ctx, "orders")
		s.must(err)
		if diff := cmp.Diff([]string{"b", "c"}, ids(left)); diff != "" {
			t.Errorf("instances behind Close:\n%s", diff)
		}
		again := s.discover(s.client)
		for _, i := range left {
			s.must(again.Unregister(s.ctx, i))
			if s.stat(pathOf(i)) != nil {
				t.Errorf("%s is there", i.ID)
			}
		}
	})
}

// SD10: in Java an instance that is registered again has its old bytes back after the next reconnect.
func TestSD10RegisteredAgainHasItsNewBytes(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, orders("a", "one")))
		s.must(d.Register(s.ctx, orders("a", "two")))
		s.awaitPayload(orders("a", "two"))
		s.expire()
		s.awaitPayload(orders("a", "two"))
		s.must(d.Update(s.ctx, orders("a", "three")))
		s.reset()
		s.awaitPayload(orders("a", "three"))
	})
}

// SD11: in Java a reconnect beside Close registers all instances again.
func TestSD11ReconnectBehindCloseRegistersNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		s.must(d.Start())
		s.must(d.Register(s.ctx, orders("a", "one")))
		done := make(chan error, 1)
		s.place.Faults().CutAll()
		go func() { done <- d.Close(s.ctx) }()
		s.must(<-done)
		s.expire()
		s.settle()
		if stat := s.stat(pathOf(orders("a", ""))); stat != nil {
			t.Errorf("it is there: %+v", stat)
		}
		s.wantErr(d.Register(s.ctx, orders("a", "one")), framework.ErrClosed)
	})
}

// SD12: in Java Close leaves the caches open.
func TestSD12CloseClosesCachesAndProviders(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		s.must(d.Start())
		s.must(d.Register(s.ctx, orders("a", "one")))
		c, p := d.Cache("orders"), d.Provider("orders")
		s.must(c.Start(s.ctx))
		s.must(p.Start(s.ctx))
		_, err := p.Instance()
		s.must(err)
		s.must(d.Close(s.ctx))
		s.wantErr(c.Sync(s.ctx), discovery.ErrClosed)
		_, err = p.Pick(s.ctx)
		s.wantErr(err, discovery.ErrClosed)
		s.wantErr(d.Cache("orders").Start(s.ctx), discovery.ErrClosed)
	})
}

// SD13: in Java one node that is no instance fails the queries of the whole service.
func TestSD13NodeThatIsNoInstanceFailsNoOther(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, orders("b", "one")))
		for _, node := range []string{"a", "c"} {
			_, err := s.reader.Create().ForPath(s.ctx, base+"/orders/"+node, []byte("no instance"))
			s.must(err)
		}
		all, err := d.Instances(s.ctx, "orders")
		s.must(err)
		c := d.Cache("orders")
		s.must(c.Start(s.ctx))
		for _, got := range [][]order{all, c.Instances()} {
			if diff := cmp.Diff([]string{"b"}, ids(got)); diff != "" {
				t.Errorf("instances:\n%s", diff)
			}
		}
		entries, err := d.Entries(s.ctx, "orders")
		s.must(err)
		for _, got := range [][]discovery.Entry[string]{entries, c.Entries()} {
			if len(got) != 3 || got[0].Err == nil || got[1].Err != nil || got[2].Err == nil {
				t.Errorf("entries %+v", got)
			}
		}
		if _, err := d.Instance(s.ctx, "orders", "a"); err == nil || errors.Is(err, discovery.ErrNoInstance) {
			t.Errorf("a node that is no instance: %v", err)
		}
		// An instance that becomes none is none.
		s.must(d.Unregister(s.ctx, orders("b", "")))
		_, err = s.reader.Create().ForPath(s.ctx, pathOf(orders("b", "")), []byte("no instance"))
		s.must(err)
		s.must(c.Sync(s.ctx))
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 0 }, "the cache has no instance")
	})
}

// SD14: in Java a cache that was cut off serves the address of an instance that has restarted with its id for ever.
func TestSD14RestartBehindACutHasItsNewAddress(t *testing.T) {
	inScene(t, func(s *scene) {
		restarting := s.discover(s.reader)
		s.must(restarting.Register(s.ctx, orders("a", "old")))
		c := s.discover(s.client).Cache("orders")
		s.must(c.Start(s.ctx))
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		s.must(restarting.Unregister(s.ctx, orders("a", "")))
		s.must(restarting.Register(s.ctx, orders("a", "new"))) // version 0, as before
		restore()
		testenv.Eventually(s, func() bool {
			got := c.Instances()
			return len(got) == 1 && got[0].Payload == "new"
		}, "the cache has the new instance")
	})
}

// Only the children of a service are its instances.
func TestCacheHasNoGrandchildren(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		i := orders("a", "one")
		i.Type = discovery.Static
		s.must(d.Register(s.ctx, i))
		data, err := s.reader.GetData().ForPath(s.ctx, pathOf(i))
		s.must(err)
		c := d.Cache("orders")
		s.must(c.Start(s.ctx))
		_, err = s.reader.Create().WithMode(builders.Persistent).ForPath(s.ctx, pathOf(i)+"/a", data)
		s.must(err)
		s.must(c.Sync(s.ctx))
		if got := c.Instances(); len(got) != 1 {
			t.Errorf("instances %v", got)
		}
	})
}

// endSession ends a session on the servers.
func (s *scene) endSession(session int64) {
	s.Helper()
	if server, ok := s.place.(interface{ ExpireSession(id int64) error }); ok {
		s.must(server.ExpireSession(session))
		return
	}
	s.must(testenv.Server(s).ExpireSession(session))
}
