package discovery_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// counting is a serializer that counts what it decodes, and panics if it is asked to.
type counting struct {
	discovery.InstanceSerializer[string]
	decoded atomic.Int64
}

func newCounting(s *scene) *counting {
	s.Helper()
	serializer, err := discovery.NewInstanceSerializer[string]()
	s.must(err)
	return &counting{InstanceSerializer: serializer}
}

func (c *counting) Encode(i order) ([]byte, error) {
	if i.Payload == "panic" {
		panic("on purpose")
	}
	return c.InstanceSerializer.Encode(i)
}

func (c *counting) Decode(data []byte) (order, error) {
	c.decoded.Add(1)
	if strings.Contains(string(data), "poison") {
		panic("on purpose")
	}
	return c.InstanceSerializer.Decode(data)
}

func TestSerializerThatPanicsFailsItsInstanceAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		var serializer discovery.InstanceSerializer[string] = newCounting(s)
		d := s.discover(s.client, discovery.WithSerializer(serializer))
		if err := d.Register(s.ctx, orders("a", "panic")); err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("register: %v", err)
		}
		s.register(d, "a", "poison")
		c := d.Cache("orders")
		s.must(c.Start(s.ctx))
		all, err := d.Instances(s.ctx, "orders")
		s.must(err)
		for _, got := range [][]order{all, c.Instances()} {
			if diff := cmp.Diff([]string{"a"}, ids(got)); diff != "" {
				t.Errorf("instances:\n%s", diff)
			}
		}
		both := discovery.New[string](s.client, base, discovery.WithSerializer(serializer), discovery.WithPayloadClass("x"))
		s.wantErr(both.Start(), framework.ErrBadArguments)
	})
}

// What has not changed is not decoded again, and a caller may change what it gets.
func TestCacheDecodesWhatHasChanged(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "f", "b", "d", "a", "c", "e")
		serializer := newCounting(s)
		c := s.discover(s.reader, discovery.WithSerializer[string](serializer)).Cache("orders")
		s.must(c.Start(s.ctx))
		s.must(c.Sync(s.ctx))
		c.Entries()[0] = discovery.Entry[string]{}
		before := serializer.decoded.Load()
		s.must(d.Update(s.ctx, orders("c", "newer")))
		s.must(c.Sync(s.ctx))
		if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f"}, ids(c.Instances())); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
		if n := serializer.decoded.Load() - before; n > 2 { // for the listeners, and for the instances
			t.Errorf("%d decoded for one change", n)
		}
	})
}

func TestCacheListenerHearsOfItsServiceAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, typed("a", "one", discovery.Static)))
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		c := s.discover(s.reader).Cache("orders")
		unhandled := make(chan error, 1)
		s.reader.AddUnhandledErrorListener(func(_ context.Context, err framework.UnhandledError) { unhandled <- err.Err })
		c.AddListener(func(context.Context, discovery.Change[string]) { panic("on purpose") })
		changes := make(chan discovery.Change[string], 10)
		c.AddListener(func(_ context.Context, change discovery.Change[string]) { changes <- change })
		s.must(c.Start(s.ctx))
		_, err := s.client.Create().WithMode(builders.Persistent).ForPath(s.ctx, pathOf(orders("a", ""))+"/below", nil)
		s.must(err)
		_, err = s.client.SetData().ForPath(s.ctx, base+"/orders", []byte("not an instance"))
		s.must(err)
		s.must(d.Update(s.ctx, typed("a", "two", discovery.Static)))
		if change := <-changes; change.Path != pathOf(orders("a", "")) || change.Instance.Payload != "two" {
			t.Errorf("the first change is %+v", change)
		}
		if err := <-unhandled; !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("the panic is reported as %v", err)
		}
	})
}

func TestInstancesHaveTheACLAndTheLifeOfTheirType(t *testing.T) {
	inScene(t, func(s *scene) {
		acl := zk.WorldACL(zk.PermAll &^ zk.PermCreate)
		d := s.discover(s.client, discovery.WithACL(acl...))
		for _, typ := range []discovery.ServiceType{discovery.Dynamic, discovery.Static, discovery.Permanent} {
			s.must(d.Register(s.ctx, typed(typ.String(), "one", typ)))
			path := pathOf(orders(typ.String(), ""))
			got, err := s.client.GetACL().ForPath(s.ctx, path)
			s.must(err)
			if diff := cmp.Diff(acl, got); diff != "" {
				t.Errorf("ACL of %v:\n%s", typ, diff)
			}
			if stat := s.stat(path); stat.EphemeralOwner != 0 != typ.IsDynamic() {
				t.Errorf("the node of %v is %+v", typ, stat)
			}
		}
	})
}

// A listener of unhandled errors that blocks holds up the reports alone.
func TestRefusalReportedToAListenerThatBlocks(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		entered, release := make(chan error, 10), make(chan struct{})
		defer close(release)
		s.client.AddUnhandledErrorListener(func(_ context.Context, err framework.UnhandledError) {
			entered <- err.Err
			<-release
		})
		s.allow(base+"/orders", zk.PermRead)
		s.wantErr(d.Register(s.ctx, orders("b", "one")), zk.ErrNoAuth)
		s.wantErr(<-entered, zk.ErrNoAuth)
		other := orders("c", "one")
		other.Name = "invoices"
		s.must(d.Register(s.ctx, other))
	})
}

func TestDrainTakesTheNewestAndEndsItsPause(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b")
		s.must(d.Update(s.ctx, orders("a", "newest")))
		c := s.cacheOf()
		seen := make(chan discovery.Change[string], 10)
		c.AddListener(func(_ context.Context, change discovery.Change[string]) { seen <- change })
		draining, end := context.WithCancel(s.ctx)
		defer end()
		drained := make(chan error, 1)
		go func() { drained <- d.Drain(draining, orders("a", "older"), time.Hour) }()
		if i := (<-seen).Instance; !i.Disabled || i.Payload != "newest" {
			t.Errorf("disabled as %+v", i)
		}
		end()
		s.wantErr(<-drained, context.Canceled)
		s.awaitNothing(pathOf(orders("a", "")))

		s.allow(pathOf(orders("b", "")), zk.PermRead) // it cannot be disabled, so nobody waits
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.wantErr(d.Drain(s.ctx, orders("b", "b"), time.Hour), zk.ErrNoAuth)
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		if stat := s.stat(pathOf(orders("b", ""))); stat != nil {
			t.Errorf("it is there behind Drain: %+v", stat)
		}
	})
}

// A static instance that cannot be deleted is an error once: Close has nothing more to say of it.
func TestUnregisterOfAnInstanceWithNodesBelow(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.Register(s.ctx, typed("a", "one", discovery.Static)))
		_, err := s.reader.Create().WithMode(builders.Persistent).ForPath(s.ctx, pathOf(orders("a", ""))+"/below", nil)
		s.must(err)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.wantErr(d.Unregister(s.ctx, typed("a", "", discovery.Static)), zk.ErrNotEmpty)
		s.must(d.Close(s.ctx))
	})
}

// An instance that goes behind the list, or may not be read, fails no query of the others.
func TestQueryOfInstancesThatCannotBeRead(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.reader), "a", "b", "c")
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		for node, err := range map[string]error{"a": zk.ErrNoNode, "b": zk.ErrNoAuth, "d-000000001": zk.ErrNoAuth} {
			s.place.Faults().Add(curatortest.Rule{
				Ops: []string{"getData"}, Path: "/**/" + node, Action: curatortest.ReplyError, Err: err,
			})
		}
		d := s.discover(s.client)
		entries, err := d.Entries(s.ctx, "orders")
		s.must(err)
		if len(entries) != 2 || !errors.Is(entries[0].Err, zk.ErrNoAuth) || entries[1].Instance.ID != "c" {
			t.Errorf("entries %+v", entries)
		}
		// One that may be it, and cannot be read, is not nothing.
		_, err = s.reader.Create().WithMode(builders.Persistent).ForPath(s.ctx, base+"/orders/d-000000001", nil)
		s.must(err)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		_, err = d.Instance(s.ctx, "orders", "d")
		s.wantErr(err, zk.ErrNoAuth)
		_, err = discovery.New[string](s.client, base).Names(s.ctx)
		s.wantErr(err, discovery.ErrNotStarted)
	})
}

// A second Start changes nothing: Close of the discovery still closes the cache.
func TestCloseClosesACacheThatWasStartedTwice(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		c := d.Cache("orders")
		s.must(c.Start(s.ctx))
		s.wantErr(c.Start(s.ctx), discovery.ErrStarted)
		s.must(d.Close(s.ctx))
		s.wantErr(c.Sync(s.ctx), discovery.ErrClosed)
	})
}

// The picks of an instance count as long as its node is there, whatever changes: its data, or other instances.
func TestProviderKeepsTheLoadOverChanges(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b")
		p := s.provider(discovery.WithStrategy(discovery.FewestInFlight[string]()))
		s.awaitAll(p, 2)
		busy, err := p.Pick(s.ctx)
		s.must(err)
		for _, id := range []string{busy.Instance.ID, map[string]string{"a": "b", "b": "a"}[busy.Instance.ID]} {
			s.must(d.Update(s.ctx, orders(id, "newer")))
			testenv.Eventually(s, func() bool {
				for _, i := range p.AllInstances() {
					if i.ID == id {
						return i.Payload == "newer"
					}
				}
				return false
			}, "the newer data")
			if counts := s.chosen(p, 50); counts[busy.Instance.ID] > 0 {
				t.Errorf("the busy instance is chosen: %v", counts)
			}
		}
		busy.Done(nil)
		discovery.Pick[string]{}.Done(errors.New("of no pick"))
	})
}

// An error counts against the life of the instance that it names, and against no other.
func TestProviderNotesErrorsOfOneLifeOfOneInstance(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		a, b := orders("a", "a"), orders("b", "b")
		b.RegistrationTime = a.RegistrationTime
		s.must(d.Register(s.ctx, a))
		s.must(d.Register(s.ctx, b))
		_, err := s.client.Create().WithMode(builders.Persistent).ForPath(s.ctx, base+"/orders/x", []byte("no instance"))
		s.must(err)
		p := s.provider(discovery.WithDownInstancePolicy[string](time.Hour, 1))
		s.awaitAll(p, 2)
		older := a
		older.RegistrationTime = a.RegistrationTime.Add(-time.Hour)
		p.NoteError(older)
		if all := ids(p.AllInstances()); len(all) != 2 {
			t.Errorf("an error of an earlier life leaves %v", all)
		}
		p.NoteError(a)
		if diff := cmp.Diff([]string{"b"}, ids(p.AllInstances())); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
	})
}

// Pick waits for the first of those that are down, and all filters count.
func TestProviderPickWaitsForTheFirstThatIsUp(t *testing.T) {
	const timeout = 4 * time.Second
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a", "b", "c", "d")
		p := s.provider(discovery.WithDownInstancePolicy[string](timeout, 1),
			discovery.WithFilter(func(i order) bool { return i.ID != "c" }),
			discovery.WithFilter(func(i order) bool { return i.ID != "d" }))
		s.awaitAll(p, 2)
		first, err := p.Pick(s.ctx)
		s.must(err)
		begin := time.Now()
		first.Done(errors.New("no answer"))
		time.Sleep(timeout / 2)
		second, err := p.Pick(s.ctx)
		s.must(err)
		second.Done(errors.New("no answer"))
		third, err := p.Pick(s.ctx)
		s.must(err)
		wantWaited(t, time.Since(begin), timeout)
		third.Done(nil)
	})
}

// wantWaited checks a wait, whose end is exact in virtual time alone.
func wantWaited(t *testing.T, waited, want time.Duration) {
	t.Helper()
	if waited < want || !testenv.Real() && waited > want {
		t.Errorf("up after %v, want %v", waited, want)
	}
}

// The time begins with the error that reaches the threshold, and further errors do not prolong it.
func TestProviderInstanceIsDownFromTheThresholdOn(t *testing.T) {
	const timeout = 4 * time.Second
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		p := s.provider(discovery.WithDownInstancePolicy[string](timeout, 2))
		s.awaitAll(p, 1)
		i, err := p.Instance()
		s.must(err)
		begin := time.Now()
		p.NoteError(i)
		time.Sleep(timeout / 2)
		p.NoteError(i) // it reaches the threshold
		time.Sleep(timeout / 2)
		p.NoteError(i)
		pick, err := p.Pick(s.ctx)
		s.must(err)
		wantWaited(t, time.Since(begin), timeout/2+timeout)
		pick.Done(nil)
	})
}
