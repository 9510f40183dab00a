package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// ended returns a context that has ended.
func (s *scene) ended() context.Context {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	return ctx
}

// outage cuts the client off until restore is called.
func (s *scene) outage() (restore func()) {
	s.Helper()
	suspended := s.awaitState(framework.Suspended)
	restore = s.place.Faults().RefuseConnects()
	s.place.Faults().CutAll()
	suspended()
	return restore
}

// allow sets the ACL of a node to these permissions of everybody.
func (s *scene) allow(path string, permissions int32) {
	s.Helper()
	_, err := s.reader.SetACL().WithACL(zk.WorldACL(permissions|zk.PermAdmin)...).ForPath(s.ctx, path)
	s.must(err)
}

// typed returns an instance of the service "orders" of a type.
func typed(id, payload string, t discovery.ServiceType) order {
	i := orders(id, payload)
	i.Type = t
	return i
}

// The connection is cut at each request in turn: there is one node with the newest data, and then none.
func TestRegistrationLostReplies(t *testing.T) {
	t.Parallel()
	for _, typ := range []discovery.ServiceType{discovery.Dynamic, discovery.DynamicSequential, discovery.Static} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
				play(t, func(s *scene) {
					fault := s.place.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
					d, other := s.discover(s.client), s.discover(s.reader)
					wantAll := func(want ...string) {
						t.Helper()
						var got []string
						s.must(s.reader.Sync().ForPath(s.ctx, "/"))
						all, err := other.Instances(s.ctx, "orders")
						s.must(err)
						for _, i := range all {
							got = append(got, i.ID+" "+i.Payload)
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("instances:\n%s", diff)
						}
					}
					s.must(d.Register(s.ctx, typed("a", "one", typ)))
					s.must(d.Register(s.ctx, typed("b", "one", typ)))
					wantAll("a one", "b one")
					s.must(d.Update(s.ctx, typed("a", "two", typ)))
					wantAll("a two", "b one")
					s.must(d.Unregister(s.ctx, typed("a", "", typ)))
					wantAll("b one")
					if names, err := d.Names(s.ctx); err != nil || len(names) != 1 {
						t.Errorf("names %v, %v", names, err)
					}
					if i, err := d.Instance(s.ctx, "orders", "b"); err != nil || i.Payload != "one" {
						t.Errorf("instance %+v, %v", i, err)
					}
					s.must(d.Drain(s.ctx, typed("b", "", typ), time.Millisecond))
					wantAll()
					hit = fault.Hits() > 0
				})
				return hit
			})
		})
	}
}

// A node of an earlier life of the process is deleted, also if nobody has seen it in this life.
func TestUnregisterStaticThatIsNotSeenYet(t *testing.T) {
	inScene(t, func(s *scene) {
		before := discovery.New[string](s.reader, base)
		s.must(before.Start())
		s.must(before.Register(s.ctx, typed("a", "before", discovery.Static)))
		s.must(before.Close(s.ctx))
		d := s.discover(s.client)
		restore := s.outage()
		s.wantErr(d.Register(s.ended(), typed("a", "now", discovery.Static)), context.Canceled)
		s.wantErr(d.Unregister(s.ended(), typed("a", "", discovery.Static)), context.Canceled)
		restore()
		s.awaitNothing(pathOf(orders("a", "")))
	})
}

// An instance that is about to be deleted is no obstacle to one of another type.
func TestRegisterAnotherTypeBehindAnUnregister(t *testing.T) {
	for _, types := range [][2]discovery.ServiceType{
		{discovery.Dynamic, discovery.Static},
		{discovery.Static, discovery.Dynamic},
		{discovery.Dynamic, discovery.DynamicSequential},
		{discovery.DynamicSequential, discovery.Static},
		{discovery.Static, discovery.Permanent},
	} {
		t.Run(fmt.Sprint(types), func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.client)
				s.must(d.Register(s.ctx, typed("a", "one", types[0])))
				restore := s.outage()
				s.wantErr(d.Unregister(s.ended(), typed("a", "", types[0])), context.Canceled)
				s.wantErr(d.Register(s.ended(), typed("a", "two", types[1])), context.Canceled)
				restore()
				other := s.discover(s.reader)
				testenv.Eventually(s, func() bool {
					all, err := other.Instances(s.ctx, "orders")
					return err == nil && len(all) == 1 && all[0].Payload == "two" && all[0].Type == types[1]
				}, "only the newer one is there")
				s.must(d.Unregister(s.ctx, typed("a", "", types[1])))
				all, err := other.Instances(s.ctx, "orders")
				if s.must(err); len(all) > 0 {
					t.Errorf("instances behind Unregister: %v", all)
				}
			})
		})
	}
}

// Close waits for a deletion that Unregister has left to the background.
func TestCloseWaitsForWhatIsUnregistered(t *testing.T) {
	for _, typ := range []discovery.ServiceType{discovery.Dynamic, discovery.Static} {
		t.Run(typ.String(), func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.client)
				s.must(d.Register(s.ctx, typed("a", "one", typ)))
				restore := s.outage()
				s.wantErr(d.Drain(s.ended(), typed("a", "", typ), time.Hour), context.Canceled)
				s.wantErr(d.Close(s.ended()), context.Canceled)
				restore()
				s.must(d.Close(s.ctx))
				s.must(s.reader.Sync().ForPath(s.ctx, "/"))
				if stat := s.stat(pathOf(orders("a", ""))); stat != nil {
					t.Errorf("it is there behind Close: %+v", stat)
				}
			})
		})
	}
}

// An earlier refusal says nothing about a later call.
func TestRegisterAgainAsksTheServersAgain(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "other")
		s.allow(base+"/orders", zk.PermRead)
		for range 6 { // the pauses grow
			s.wantErr(d.Register(s.ctx, orders("a", "one")), zk.ErrNoAuth)
		}
		s.allow(base+"/orders", zk.PermAll)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.must(d.Register(s.ctx, orders("a", "two")))
		s.allow(pathOf(orders("a", "")), zk.PermRead)
		s.wantErr(d.Update(s.ctx, orders("a", "three")), zk.ErrNoAuth)
		s.allow(pathOf(orders("a", "")), zk.PermAll)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.must(d.Update(s.ctx, orders("a", "four")))
	})
}

func TestCloseAgainAsksTheServersAgain(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		s.allow(base+"/orders", zk.PermRead)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.wantErr(d.Close(s.ctx), zk.ErrNoAuth)
		s.allow(base+"/orders", zk.PermAll)
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		s.must(d.Close(s.ctx))
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		if stat := s.stat(pathOf(orders("a", ""))); stat != nil {
			t.Errorf("it is there behind Close: %+v", stat)
		}
	})
}

// Other nodes whose names begin with the id hide no instance: neither one that goes meanwhile, nor one that this client
// may not read.
func TestSequentialInstanceBehindOthersIsFound(t *testing.T) {
	for name, refusal := range map[string]error{"gone": zk.ErrNoNode, "refused": zk.ErrNoAuth} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.reader)
				s.must(d.Register(s.ctx, typed("a", "one", discovery.DynamicSequential)))
				_, err := s.reader.Create().WithMode(builders.Persistent).ForPath(s.ctx, base+"/orders/a-000000001", nil)
				s.must(err)
				s.must(s.client.Sync().ForPath(s.ctx, "/"))
				s.place.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Path: "/**/a-000000001", Action: curatortest.ReplyError, Err: refusal,
				})
				other := s.discover(s.client)
				got, err := other.Instance(s.ctx, "orders", "a")
				if err != nil || got.Payload != "one" {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		})
	}
}

// A client that compresses all data finds what it has registered. Data that does not decompress is no instance.
func TestDiscoveryOfAClientThatCompresses(t *testing.T) {
	inScene(t, func(s *scene) {
		client := testclient.ConnectAt(s.T, s.other, s.chroot, framework.WithCompression())
		d := s.discover(client)
		s.must(d.Register(s.ctx, orders("a", "one")))
		_, err := s.reader.Create().WithMode(builders.Persistent).ForPath(s.ctx, base+"/orders/b", []byte("{}"))
		s.must(err)
		all, err := d.Instances(s.ctx, "orders")
		if s.must(err); len(all) != 1 || all[0].Payload != "one" {
			t.Errorf("instances %v", all)
		}
		c := d.Cache("orders")
		s.must(c.Start(s.ctx))
		if all := c.Instances(); len(all) != 1 || all[0].Payload != "one" {
			t.Errorf("instances of the cache %v", all)
		}
		entries, err := d.Entries(s.ctx, "orders")
		s.must(err)
		for _, got := range [][]discovery.Entry[string]{entries, c.Entries()} {
			if len(got) != 2 || got[0].Err != nil || !errors.Is(got[1].Err, framework.ErrDataInconsistency) {
				t.Errorf("entries %+v", got)
			}
		}
		if _, err := d.Instance(s.ctx, "orders", "b"); !errors.Is(err, framework.ErrDataInconsistency) {
			t.Errorf("an instance that does not decompress: %v", err)
		}
		old := typed("old", "one", discovery.Static)
		old.RegistrationTime = time.UnixMilli(1)
		s.must(d.RegisterOnce(s.ctx, old))
		if purged, err := d.Purge(s.ctx, time.Hour); err != nil || purged != 1 {
			t.Errorf("purged %d: %v", purged, err)
		}
	})
}

// An Unregister in an outage costs the same behind any number of others.
func TestUnregisterOfManyInAnOutage(t *testing.T) { // it looks at the time of the process
	each := func(n int) time.Duration {
		least := time.Hour // of some, on a machine that is busy
		for range 3 {
			server := curatortest.NewServerT(t)
			client := testclient.Connect(t, server.ConnectString(), framework.WithMaxCloseWait(time.Minute))
			d := discovery.New[string](client, base)
			testclient.Must(t, d.Start())
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for id := range n {
				_ = d.Register(ended, orders(strconv.Itoa(id), "")) // all at once
			}
			testclient.Must(t, d.Register(t.Context(), orders("last", "")))
			testclient.Must(t, server.Stop())
			begin := time.Now()
			for id := range n {
				_ = d.Unregister(ended, orders(strconv.Itoa(id), ""))
			}
			least = min(least, time.Since(begin)/time.Duration(n))
			_ = d.Close(ended)
			testclient.Must(t, client.Close())
		}
		return least
	}
	var few, many time.Duration
	for range 5 { // whatever else the machine does: it was 20 times as long each time
		if few, many = each(250), each(4000); many <= 8*few {
			return
		}
	}
	t.Errorf("%v each behind 4000, %v behind 250", many, few)
}

// Nothing waits for a client that nobody has started.
func TestDiscoveryOfAClientThatIsNotStarted(t *testing.T) {
	inScene(t, func(s *scene) {
		client, err := framework.New("127.0.0.1:1")
		s.must(err)
		d := s.discover(client)
		s.wantErr(d.Register(s.ctx, orders("a", "")), framework.ErrNotStarted)
		s.wantErr(d.RegisterOnce(s.ctx, static("a", "", 0)), framework.ErrNotStarted)
		s.wantErr(d.Unregister(s.ctx, orders("a", "")), framework.ErrNotStarted)
		c, p := d.Cache("orders"), d.Provider("orders")
		s.wantErr(c.Start(s.ctx), framework.ErrNotStarted)
		s.wantErr(p.Start(s.ctx), framework.ErrNotStarted)
		_, err = d.Names(s.ctx)
		s.wantErr(err, framework.ErrNotStarted)
		s.must(client.Close())
		s.wantErr(d.Register(s.ctx, orders("a", "")), discovery.ErrClosed)
	})
}

// Register waits until the node of another session has gone, Update does not.
func TestUpdateDoesNotWaitForAnotherSession(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.reader), "a")
		s.must(s.client.Sync().ForPath(s.ctx, "/"))
		d := s.discover(s.client)
		s.wantErr(d.Register(s.ended(), orders("a", "ours")), context.Canceled)
		err := d.Update(s.ctx, orders("a", "newer"))
		if s.wantErr(err, discovery.ErrForeign); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it has waited: %v", err)
		}
	})
}

// The error of an outage says what is wrong with the connection, and names what was called.
func TestRegisterAndUpdateInAnOutageNameItsReason(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "there")
		defer s.outage()()
		testenv.Eventually(s, func() bool {
			return errors.Is(s.client.BlockUntilConnected(s.ended()), syscall.ECONNREFUSED)
		}, "a connect is refused")
		for what, call := range map[string]func(context.Context, order) error{"register": d.Register, "update": d.Update} {
			id := map[string]string{"register": "new", "update": "there"}[what]
			short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
			defer cancel()
			for name, ctx := range map[string]context.Context{"ended": s.ended(), "short": short} {
				err := call(ctx, orders(id, "newer"))
				s.wantErr(err, ctx.Err())
				s.wantErr(err, syscall.ECONNREFUSED)
				if !strings.HasPrefix(fmt.Sprint(err), "discovery: "+what+" /services/orders/"+id) {
					t.Errorf("%s: the error is %q", name, err)
				}
			}
		}
	})
}

// An error of Update speaks of an update, whatever is wrong with the instance.
func TestUpdateThatFailsDoesNotSpeakOfRegister(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		static, nameless := orders("a", "a"), orders("a", "a")
		static.Type, nameless.Name = discovery.Static, ""
		for name, i := range map[string]order{
			"another type": static, "no name": nameless, "no id": orders("", ""),
			"too large": orders("a", strings.Repeat("x", framework.DefaultMaxBuffer)),
		} {
			err := d.Update(s.ctx, i)
			if err == nil || !strings.Contains(err.Error(), "update ") || strings.Contains(err.Error(), "register") {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
	})
}

// A server answers nothing to a request that is longer than it reads: it ends the connection. The instance is refused
// then, and holds up no other.
func TestInstanceThatTheServerDoesNotReadIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort(), curatortest.WithMaxBuffer(20_000))
		client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		d := discovery.New[string](client, base)
		testclient.Must(t, d.Start())
		small, large := orders("a", "a"), strings.Repeat("x", 30_000)
		var all sync.WaitGroup
		for n := range 20 { // some of them in one transaction with the large one
			all.Go(func() { testclient.Must(t, d.Register(t.Context(), orders(strconv.Itoa(n), ""))) })
		}
		all.Go(func() {
			err := d.Register(t.Context(), orders("large", large))
			if !errors.Is(err, framework.ErrRequestTooLarge) || !strings.Contains(err.Error(), "register ") {
				t.Errorf("register: %v", err)
			}
		})
		all.Wait()
		testclient.Must(t, d.Register(t.Context(), small))
		small.Payload = large
		err := d.Update(t.Context(), small)
		if !errors.Is(err, framework.ErrRequestTooLarge) || !strings.Contains(err.Error(), "update ") {
			t.Errorf("update: %v", err)
		}
		small.Payload = "smaller"
		testclient.Must(t, d.Update(t.Context(), small))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		held := server.Faults().Add(curatortest.Rule{
			Ops: []string{"multi", "setData"}, Action: curatortest.CutAfter, MayMiss: true,
		})
		small.Payload = "newer"
		if err := d.Update(ctx, small); !strings.Contains(fmt.Sprint(err), "connection lost") {
			t.Errorf("an update whose writes are lost: %v", err)
		}
		held.Remove()
		testclient.Must(t, d.Close(t.Context()))
	})
}
