package discovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// static returns a static instance that was registered an age ago.
func static(id, payload string, age time.Duration) order {
	i := orders(id, payload)
	i.Type, i.RegistrationTime = discovery.Static, time.Now().Add(-age)
	return i
}

func TestRegisterOnceIsNotPutBack(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		i := static("a", "one", 0)
		s.must(ours.RegisterOnce(s.ctx, i))
		s.awaitPayload(i)
		i.Payload = "two"
		s.must(theirs.RegisterOnce(s.ctx, i)) // of anybody
		s.must(ours.Register(s.ctx, static("b", "kept", 0)))
		s.expire()
		s.must(ours.Register(s.ctx, static("b", "kept still", 0))) // the next session has settled
		s.awaitPayload(i)
		s.must(theirs.Unregister(s.ctx, i))
		s.expire()
		s.must(ours.Register(s.ctx, static("b", "kept on", 0)))
		if stat := s.stat(pathOf(i)); stat != nil {
			t.Errorf("it is there again: %+v", stat)
		}
	})
}

func TestRegisterOnceLeavesNodesOfOthers(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		s.must(theirs.Register(s.ctx, orders("a", "theirs")))
		s.wantErr(ours.RegisterOnce(s.ctx, static("a", "ours", 0)), discovery.ErrForeign)
		s.must(ours.Register(s.ctx, static("b", "kept", 0)))
		s.wantErr(ours.RegisterOnce(s.ctx, static("b", "once", 0)), discovery.ErrInUse)
		if got, err := theirs.Instance(s.ctx, "orders", "b"); err != nil || got.Payload != "kept" {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := theirs.Instance(s.ctx, "orders", "a"); err != nil || got.Payload != "theirs" {
			t.Errorf("got %+v, %v", got, err)
		}
		if stat := s.stat(pathOf(orders("a", ""))); stat == nil || stat.Version > 0 {
			t.Errorf("the node of the session is written: %+v", stat)
		}
		// The node of a service is no instance of the service above it.
		nested := static("c", "", 0)
		nested.Name = "orders/eu"
		s.must(theirs.RegisterOnce(s.ctx, nested))
		s.wantErr(ours.RegisterOnce(s.ctx, static("eu", "", 0)), discovery.ErrForeign)
	})
}

func TestRegisterOnceRefusesWhatCannotBe(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		s.wantErr(d.RegisterOnce(s.ctx, static("a", "", 0)), discovery.ErrNotStarted)
		_, err := d.Purge(s.ctx, 0)
		s.wantErr(err, discovery.ErrNotStarted)
		s.must(d.Start())
		s.wantErr(d.RegisterOnce(s.ctx, orders("a", "dynamic")), framework.ErrBadArguments)
		s.wantErr(d.RegisterOnce(s.ctx, static("a/b", "", 0)), zk.ErrInvalidPath)
		s.must(d.Close(s.ctx))
		s.wantErr(d.RegisterOnce(s.ctx, static("a", "", 0)), discovery.ErrClosed)
		_, err = d.Purge(s.ctx, 0)
		s.wantErr(err, discovery.ErrClosed)
		if stat := s.stat(base); stat != nil {
			t.Errorf("something is there: %+v", stat)
		}
	})
}

// The node is deleted before the look at it, or before the write.
func TestRegisterOnceBesideUnregister(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"exists", "setData"} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				ours, theirs := s.discover(s.client), s.discover(s.reader)
				s.must(theirs.RegisterOnce(s.ctx, static("a", "one", 0)))
				hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: curatortest.HoldRequest, Count: 1})
				done := make(chan error, 1)
				go func() { done <- ours.RegisterOnce(s.ctx, static("a", "two", 0)) }()
				s.must(hold.Wait(s.ctx))
				s.must(theirs.Unregister(s.ctx, static("a", "", 0)))
				hold.Release()
				s.must(<-done)
				s.awaitPayload(static("a", "two", 0))
			})
		})
	}
}

// The context of Purge ends it at each request.
func TestPurgeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"getChildren2", "getData", "delete"} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.client)
				s.must(d.RegisterOnce(s.ctx, static("a", "", time.Hour)))
				hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: curatortest.HoldRequest, Count: 1})
				ctx, cancel := context.WithCancel(s.ctx)
				done := make(chan error, 1)
				go func() {
					_, err := d.Purge(ctx, time.Minute)
					done <- err
				}()
				s.must(hold.Wait(s.ctx))
				cancel()
				err := <-done
				hold.Release()
				s.wantErr(err, context.Canceled)
				if errors.Is(err, framework.ErrUncertain) != (op == "delete") {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// Whatever request is lost, or its answer, what was done is what is said.
func TestRegistrarCutAtEachRequest(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		play(t, func(s *scene) {
			fault := s.place.Faults().Add(curatortest.Rule{Action: action, Skip: k, Count: 1, MayMiss: true})
			d := s.discover(s.client)
			s.must(d.RegisterOnce(s.ctx, static("a", "one", 0)))
			s.must(d.RegisterOnce(s.ctx, static("a", "two", 0)))
			s.awaitPayload(static("a", "two", 0))
			s.must(d.RegisterOnce(s.ctx, static("b", "", time.Hour)))
			n, err := d.Purge(s.ctx, time.Minute)
			switch s.must(err); {
			case s.stat(pathOf(static("b", "", 0))) != nil:
				t.Error("the old instance is there")
			case n != 1 && action != curatortest.CutAfter: // a lost answer is an instance that is gone
				t.Errorf("%d are purged", n)
			}
			s.awaitPayload(static("a", "two", 0))
			hit = fault.Hits() > 0
		})
		return hit
	})
}

func TestPurgeDeletesOldStaticInstancesOfAnybody(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		s.must(ours.RegisterOnce(s.ctx, static("old", "", time.Hour)))
		s.must(theirs.RegisterOnce(s.ctx, static("theirs", "", time.Hour)))
		s.must(ours.RegisterOnce(s.ctx, static("young", "", time.Second)))
		s.must(ours.Register(s.ctx, static("kept", "", time.Hour)))
		permanent := static("permanent", "", time.Hour)
		permanent.Type = discovery.Permanent
		s.must(ours.RegisterOnce(s.ctx, permanent))
		dynamic := orders("dynamic", "")
		dynamic.RegistrationTime = time.Now().Add(-time.Hour)
		s.must(theirs.Register(s.ctx, dynamic))
		other := static("old", "", time.Hour)
		other.Name = "payments"
		s.must(theirs.RegisterOnce(s.ctx, other))
		_, err := s.reader.Create().ForPath(s.ctx, base+"/orders/none", []byte("no instance"))
		s.must(err)

		n, err := ours.Purge(s.ctx, time.Minute)
		s.must(err)
		if n != 3 {
			t.Errorf("%d are purged", n)
		}
		left, err := theirs.Instances(s.ctx, "orders")
		s.must(err)
		want := []string{"dynamic", "kept", "permanent", "young"}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(ids(left)))); diff != "" {
			t.Errorf("instances:\n%s", diff)
		}
		left, err = theirs.Instances(s.ctx, "payments")
		s.must(err)
		if len(left) != 0 || s.stat(base+"/orders/none") == nil {
			t.Errorf("payments %v", left)
		}
		n, err = ours.Purge(s.ctx, time.Minute) // nothing is old
		s.must(err)
		if n != 0 {
			t.Errorf("%d are purged", n)
		}
	})
}

func TestPurgeWithoutBasePathIsNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		n, err := s.discover(s.client).Purge(s.ctx, 0)
		s.must(err)
		if n != 0 || s.stat(base) != nil {
			t.Errorf("%d are purged", n)
		}
	})
}

// An instance that is registered again while it is purged stays: between the two looks at it, and behind them.
func TestPurgeBesideRegisterOnce(t *testing.T) {
	for _, hold := range []curatortest.Rule{
		{Ops: []string{"getData"}, Action: curatortest.HoldRequest, Skip: 1, Count: 1},
		{Ops: []string{"delete"}, Action: curatortest.HoldRequest, Count: 1},
	} {
		t.Run(hold.Ops[0], func(t *testing.T) {
			inScene(t, func(s *scene) {
				ours, theirs := s.discover(s.client), s.discover(s.reader)
				s.must(theirs.RegisterOnce(s.ctx, static("a", "one", time.Hour)))
				s.must(s.client.Sync().ForPath(s.ctx, "/"))
				held := s.place.Faults().Add(hold)
				purged := make(chan int, 1)
				go func() {
					n, err := ours.Purge(s.ctx, time.Minute)
					s.wantErr(err, nil)
					purged <- n
				}()
				s.must(held.Wait(s.ctx))
				s.must(theirs.RegisterOnce(s.ctx, static("a", "two", 0)))
				held.Release()
				if n := <-purged; n != 0 {
					t.Errorf("%d are purged", n)
				}
				s.awaitPayload(static("a", "two", 0))
			})
		})
	}
}

// An instance that may not be read or deleted is an error, and holds up no other.
func TestPurgeWithoutPermission(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		setACL := func(path string, perms int32) {
			_, err := s.reader.SetACL().WithACL(zk.WorldACL(perms)...).ForPath(s.ctx, path)
			s.must(err)
		}
		for _, id := range []string{"a", "b", "c"} {
			s.must(theirs.RegisterOnce(s.ctx, static(id, "", time.Hour)))
		}
		for _, name := range []string{"fixed", "hidden"} {
			i := static("a", "", time.Hour)
			i.Name = name
			s.must(theirs.RegisterOnce(s.ctx, i))
		}
		setACL(pathOf(static("a", "", 0)), zk.PermAdmin)
		setACL(base+"/fixed", zk.PermAdmin|zk.PermRead)
		setACL(base+"/hidden", zk.PermAdmin)
		n, err := ours.Purge(s.ctx, time.Minute)
		s.wantErr(err, zk.ErrNoAuth)
		for _, path := range []string{base + "/orders/a", base + "/fixed/a", base + "/hidden"} {
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name %s", err, path)
			}
		}
		if n != 2 {
			t.Errorf("%d are purged", n)
		}
		setACL(base+"/fixed", zk.PermAll) // the end of the test deletes it
		setACL(base+"/hidden", zk.PermAll)
	})
}

// Context and outage end the calls.
func TestRegistrarInOutage(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.must(d.RegisterOnce(s.ctx, static("a", "", time.Hour)))
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
		defer cancel()
		s.wantErr(d.RegisterOnce(short, static("a", "", 0)), context.DeadlineExceeded)
		if _, err := d.Purge(short, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("purge: %v", err)
		}
		restore()
	})
}

// WithACL is that of instances that are registered once, too.
func TestRegisterOnceHasACL(t *testing.T) {
	inScene(t, func(s *scene) {
		acl := zk.WorldACL(zk.PermRead | zk.PermAdmin | zk.PermDelete)
		d := s.discover(s.client, discovery.WithACL(acl...))
		s.must(d.RegisterOnce(s.ctx, static("a", "", 0)))
		got, err := s.reader.GetACL().ForPath(s.ctx, pathOf(static("a", "", 0)))
		s.must(err)
		if diff := cmp.Diff(acl, got); diff != "" {
			t.Errorf("ACL:\n%s", diff)
		}
	})
}

// The node changes hands between the look at it and the write: it is not ours, although it has the same version.
func TestRegisterOnceBesideRegisterOfASession(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		s.must(theirs.RegisterOnce(s.ctx, static("a", "one", 0)))
		hold := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Action: curatortest.HoldRequest, Count: 1,
		})
		done := make(chan error, 1)
		go func() { done <- ours.RegisterOnce(s.ctx, static("a", "two", 0)) }()
		s.must(hold.Wait(s.ctx))
		s.must(theirs.Unregister(s.ctx, static("a", "", 0)))
		s.must(theirs.Register(s.ctx, orders("a", "theirs")))
		hold.Release()
		s.wantErr(<-done, discovery.ErrForeign)
		testenv.Eventually(s, func() bool {
			got, err := theirs.Instance(s.ctx, "orders", "a")
			return err == nil && got.Payload == "theirs"
		}, "the session has put its data back")
	})
}

// Of two that write at once, each looks again, and the later one counts.
func TestRegisterOnceBesideAnother(t *testing.T) {
	inScene(t, func(s *scene) {
		ours, theirs := s.discover(s.client), s.discover(s.reader)
		s.must(theirs.RegisterOnce(s.ctx, static("a", "one", 0)))
		hold := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Action: curatortest.HoldRequest, Count: 1,
		})
		done := make(chan error, 1)
		go func() { done <- ours.RegisterOnce(s.ctx, static("a", "ours", 0)) }()
		s.must(hold.Wait(s.ctx))
		s.must(theirs.RegisterOnce(s.ctx, static("a", "theirs", 0)))
		s.place.Faults().ResetTrace()
		hold.Release()
		s.must(<-done)
		s.awaitPayload(static("a", "ours", 0))
		if counts := s.wantRequests(4, "another look"); counts["setData"] != 1 || counts["exists"] != 1 {
			t.Errorf("it has not looked again: %v", counts)
		}
	})
}

// The name of a service may be a path, also below an instance of another one.
func TestPurgeOfServicesWhoseNameIsAPath(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		paths := map[string]bool{}
		for _, name := range []string{"shops", "shops/eu", "shops/eu/nord", "shops/a/b", "only/path/there"} {
			for id, age := range map[string]time.Duration{"a": time.Hour, "young": 0} {
				i := static(id, "", age)
				i.Name = name
				s.must(d.RegisterOnce(s.ctx, i))
				paths[pathOf(i)] = age == 0 || name == "shops" && id == "a" // which has a service below it
			}
		}
		n, err := d.Purge(s.ctx, time.Minute)
		s.must(err)
		if n != 4 {
			t.Errorf("%d are purged", n)
		}
		for path, want := range paths {
			if got := s.stat(path) != nil; got != want {
				t.Errorf("%s is there: %t", path, got)
			}
		}
	})
}

// An instance that somebody else deletes meanwhile is not purged, and no error: before the second look at it, or before
// its deletion.
func TestPurgeBesideUnregister(t *testing.T) {
	for op, skip := range map[string]int{"getData": 1, "delete": 0} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				ours, theirs := s.discover(s.client), s.discover(s.reader)
				s.must(theirs.RegisterOnce(s.ctx, static("a", "one", time.Hour)))
				s.must(s.client.Sync().ForPath(s.ctx, "/"))
				hold := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{op}, Action: curatortest.HoldRequest, Skip: skip, Count: 1,
				})
				purged := make(chan int, 1)
				go func() {
					n, err := ours.Purge(s.ctx, time.Minute)
					s.wantErr(err, nil)
					purged <- n
				}()
				s.must(hold.Wait(s.ctx))
				s.must(theirs.Unregister(s.ctx, static("a", "", 0)))
				hold.Release()
				if n := <-purged; n != 0 {
					t.Errorf("%d are purged", n)
				}
			})
		})
	}
}
