package shared_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
)

// In Java: TestSharedCount.testSimple, testMultiClients, testMultiClientDifferentSeed.
func TestSharedValueStartsWithSeedAndFollowsOthers(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewSharedValue(s.client, path, []byte("1"))
		if got := v.VersionedValue(); string(got.Value) != "1" || got.Version != -1 || got.Zxid != -1 {
			t.Errorf("before the start %+v", got)
		}
		other := s.start(s.writer, "2")
		next, nextOfOther := s.events(v), s.events(other)
		s.must(v.Start(s.ctx))
		defer v.Close() //nolint:errcheck // always nil
		if got := string(v.Value()); got != "2" {
			t.Errorf("the seed replaces a value: %q", got)
		}
		s.must(v.SetValue(s.ctx, []byte("3")))
		if got := string(v.Value()); got != "3" {
			t.Errorf("the own value is %q after it was set", got)
		}
		s.await(other, "3")
		for range 2 { // a value that is overwritten before it is read has no event
			want := string(other.Value())
			for _, next := range []func() string{next, nextOfOther} {
				if got := next(); got != want {
					t.Errorf("the listener gets %q, not %q", got, want)
				}
			}
			if want != "" {
				s.must(other.SetValue(s.ctx, nil))
				s.await(v, "")
			}
		}
		data, stat := s.stored()
		if got := v.VersionedValue(); data != "" || got.Version != stat.Version || got.Zxid != stat.Mzxid {
			t.Errorf("the value is %+v of %q, %+v", got, data, stat)
		}
		if parent, err := s.writer.CheckExists().ForPath(s.ctx, "/limits"); err != nil || parent == nil {
			t.Errorf("the parent is %v, %v", parent, err)
		}
	})
}

// The answer to an own write may come behind the event of a later one. It does not take its place.
func TestSharedValueOwnWriteBesideOthersDoesNotTurnBack(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "0")
		for i := range testenv.Size(200, 20, 200) {
			var wg sync.WaitGroup
			for k := range 4 {
				wg.Go(func() { s.must(v.SetValue(s.ctx, fmt.Appendf(nil, "ours %d %d", i, k))) })
				wg.Go(func() { s.write(fmt.Sprintf("theirs %d %d", i, k)) })
			}
			wg.Wait()
			data, _ := s.stored()
			s.await(v, data)
		}
	})
}

// In Java: TestSharedCount.testSimpleVersioned.
func TestTrySetValue(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "0")
		first := v.VersionedValue()
		try := func(previous shared.VersionedValue[[]byte], value string, want bool) {
			t.Helper()
			set, err := v.TrySetValue(s.ctx, previous, []byte(value))
			if set != want || err != nil {
				t.Errorf("set to %s: %t, %v", value, set, err)
			}
		}
		try(first, "1", true)
		if got := string(v.Value()); got != "1" {
			t.Errorf("the own value is %q", got)
		}
		try(first, "2", false) // known to be old
		s.write("3")
		now := v.VersionedValue() // which may be old
		try(now, "4", string(now.Value) == "3")
		if string(now.Value) != "3" {
			s.await(v, "3")
			try(v.VersionedValue(), "4", true)
		}
		crafted := shared.VersionedValue[[]byte]{Version: v.VersionedValue().Version + 1, Zxid: 1 << 62}
		try(crafted, "5", false)
		if data, _ := s.stored(); data != "4" || string(v.Value()) != "4" {
			t.Errorf("the value is %q, the copy %q", data, v.Value())
		}
		newer := v.VersionedValue() // of another copy, that is ahead
		other := shared.NewSharedValue(s.client, path, nil)
		s.must(other.Start(s.ctx))
		defer other.Close() //nolint:errcheck // always nil
		s.must(v.SetValue(s.ctx, []byte("6")))
		if set, err := other.TrySetValue(s.ctx, v.VersionedValue(), []byte("7")); !set || err != nil {
			t.Errorf("a copy that lags sets a newer version: %t, %v", set, err)
		}
		try(newer, "8", false)

		versionOnly := shared.VersionedValue[[]byte]{Version: v.VersionedValue().Version}
		set, err := v.TrySetValue(s.ctx, versionOnly, []byte("9"))
		s.wantError(err, framework.ErrBadArguments)
		if set {
			t.Error("set with a version that was never read")
		}
		_, err = v.TrySetValue(s.ctx, shared.NewSharedValue(s.client, path, nil).VersionedValue(), nil)
		s.wantError(err, shared.ErrIllegalVersion)
	})
}

func TestSharedValueFollowsNodeThatIsDeletedAndCreated(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "1")
		next := s.events(v)
		old := v.VersionedValue()
		s.remove()
		_, err := v.TrySetValue(s.ctx, old, []byte("2"))
		s.wantError(err, zk.ErrNoNode)
		s.wantError(v.SetValue(s.ctx, []byte("2")), zk.ErrNoNode)
		if got := string(v.Value()); got != "1" {
			t.Errorf("the value of no node is %q", got)
		}
		for _, want := range []string{"3", "4"} { // each with the version 0
			s.write(want)
			if got := next(); got != want {
				t.Errorf("the listener gets %q, not %q", got, want)
			}
			s.await(v, want)
			if set, err := v.TrySetValue(s.ctx, old, nil); set || err != nil {
				t.Errorf("the version of an earlier node is set: %t, %v", set, err)
			}
			s.remove()
		}
	})
}

func TestSharedValueStartCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create2", "createContainer", "getData"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				v := shared.NewSharedValue(s.client, path, []byte("1"))
				next := s.events(v)
				refusal := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{op}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
				})
				s.wantError(v.Start(s.ctx), zk.ErrNoAuth)
				s.wantError(v.SetValue(s.ctx, nil), shared.ErrNotStarted)
				s.wantError(v.SetValue(s.ctx, nil), framework.ErrNotStarted)
				testenv.Eventually(t, func() bool { return s.client.Health().Watches == 0 }, "nothing follows the node")
				refusal.Remove()
				s.must(v.Start(s.ctx))
				defer v.Close() //nolint:errcheck // always nil
				s.wantError(v.Start(s.ctx), shared.ErrStarted)
				s.must(v.SetValue(s.ctx, []byte("2")))
				if got := next(); got != "2" {
					t.Errorf("the listener gets %q", got)
				}
			})
		})
	}
	t.Run("without a connection", func(t *testing.T) {
		t.Parallel()
		inScene(t, func(s *scene) {
			v := shared.NewSharedValue(s.client, path, []byte("1"))
			restore := s.cutOff()
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			s.wantError(v.Start(ctx), context.DeadlineExceeded)
			restore()
			s.must(v.Start(s.ctx))
			defer v.Close() //nolint:errcheck // always nil
			s.await(v, "1")
		})
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		inScene(t, func(s *scene) {
			v := shared.NewSharedValue(s.client, path, []byte("1"))
			held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldRequest})
			defer held.Remove()
			ended := make(chan error)
			go func() { ended <- v.Start(s.ctx) }()
			s.must(held.Wait(s.ctx))
			s.wantError(v.Start(s.ctx), shared.ErrStarted)
			s.must(v.Close())
			s.wantError(<-ended, shared.ErrClosed)
			s.wantError(v.Start(s.ctx), framework.ErrClosed)
			s.wantError(v.SetValue(s.ctx, nil), shared.ErrClosed)
			s.must(v.Close())
		})
	})
	t.Run("faster than the Close that ends it", func(t *testing.T) {
		t.Parallel()
		inScene(t, func(s *scene) {
			v := shared.NewSharedValue(s.client, path, []byte("1"))
			held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldRequest})
			defer held.Remove()
			ended := make(chan error)
			v.AtEnd(func() { s.wantError(<-ended, shared.ErrClosed) })
			go func() { ended <- v.Start(s.ctx) }()
			s.must(held.Wait(s.ctx))
			s.must(v.Close())
		})
	})
	t.Run("closed client", func(t *testing.T) {
		t.Parallel()
		inScene(t, func(s *scene) {
			client := s.newClient(s.place)
			held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldRequest})
			defer held.Remove()
			ended := make(chan error)
			v := shared.NewSharedValue(client, path, []byte("1"))
			go func() { ended <- v.Start(s.ctx) }()
			s.must(held.Wait(s.ctx))
			s.must(client.Close())
			s.wantError(<-ended, framework.ErrClosed)
			s.wantError(v.Start(s.ctx), framework.ErrClosed)
		})
	})
	if err := shared.NewSharedValue(nil, "/", nil).Close(); err != nil {
		t.Error(err)
	}
}

func TestSharedValueOfProcessThatMayOnlyRead(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.write("1")
		writes := []string{"create", "create2", "createContainer", "setData"}
		s.place.Faults().Add(curatortest.Rule{
			Ops: writes, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		v := s.start(s.client, "0")
		s.write("2")
		s.await(v, "2")
		s.wantError(v.SetValue(s.ctx, nil), zk.ErrNoAuth)
	})
}

func TestSharedValueReadsAgainAfterRefusal(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "1")
		if err := v.Err(); err != nil {
			t.Error(err)
		}
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.write("2")
		testenv.Eventually(t, func() bool { return errors.Is(v.Err(), zk.ErrNoAuth) }, "the read is refused")
		refusal.Remove()
		s.await(v, "2")
		testenv.Eventually(t, func() bool { return v.Err() == nil }, "the error is over")
	})
}

// A caller that tries again with the copy would try for ever.
func TestTrySetValueOfProcessThatMayNotReadIsError(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.write("1") // a value that creates its node may read it once more
		v := s.start(s.client, "0")
		before := v.VersionedValue()
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.write("2")
		set, err := v.TrySetValue(s.ctx, before, []byte("3"))
		if set || errors.Is(err, shared.ErrUncertain) {
			t.Errorf("set: %t, %v", set, err)
		}
		s.wantError(err, zk.ErrNoAuth)
		if data, _ := s.stored(); data != "2" {
			t.Errorf("the node has %q", data)
		}
		refusal.Remove()
		if set, err = v.TrySetValue(s.ctx, before, []byte("3")); set || err != nil || string(v.Value()) != "2" {
			t.Errorf("set: %t, %v, the copy is %q", set, err, v.Value())
		}
	})
}

// In Java: TestSharedCount.testDisconnectReadEventDoesNotRetry, testMultiClientsReconnect.
func TestSharedValueCatchesUpAfterOutage(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]bool{"short": false, "longer than the session": true} {
		for what, change := range map[string]func(s *scene){
			"set":     func(s *scene) { s.write("2") },
			"created": func(s *scene) { s.remove(); s.write("2") },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				inScene(t, func(s *scene) {
					v := s.start(s.client, "1")
					next := s.events(v)
					states := make(chan framework.ConnectionState, 10)
					v.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) { states <- state })
					lost := s.awaitState(framework.Lost)
					restore := s.cutOff()
					want := []framework.ConnectionState{framework.Suspended, framework.Reconnected}
					if long {
						lost()
						want = []framework.ConnectionState{framework.Suspended, framework.Lost, framework.Reconnected}
					}
					change(s)
					if got := string(v.Value()); got != "1" {
						t.Errorf("the value is %q without a connection", got)
					}
					restore()
					if got := next(); got != "2" {
						t.Errorf("the listener gets %q", got)
					}
					for _, want := range want {
						if got := <-states; got != want {
							t.Errorf("the state %v in place of %v", got, want)
						}
					}
					s.write("3")
					if got := next(); got != "3" {
						t.Errorf("the listener gets %q", got)
					}
				})
			})
		}
	}
}

// In Java the listeners are called after each connection.
func TestSharedValueListenerIsNotCalledWithoutChange(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "1")
		next := s.events(v)
		again := s.awaitState(framework.Reconnected)
		s.cutOff()()
		again()
		s.must(v.SetValue(s.ctx, []byte("2")))
		if got := next(); got != "2" {
			t.Errorf("the listener gets %q", got)
		}
	})
}

func TestSharedValueClosesInListener(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client, "1")
		ended := make(chan error, 1)
		v.AddListener(func(ctx context.Context, _ shared.VersionedValue[[]byte]) {
			s.must(v.Close())
			<-ctx.Done()
			ended <- context.Cause(ctx)
		})
		v.AddListener(func(context.Context, shared.VersionedValue[[]byte]) { t.Error("called after Close") })
		s.write("2")
		select {
		case <-ended:
		case <-s.ctx.Done():
			t.Error("the context of the listener does not end")
		}
		s.write("3")
	})
}

func TestSharedValuePanicOfListenerIsReported(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		reported := make(chan error, 1)
		s.client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { reported <- e.Err })
		v := s.start(s.client, "1")
		v.AddListener(func(context.Context, shared.VersionedValue[[]byte]) { panic("on purpose") })
		next := s.events(v)
		s.write("2")
		if got := next(); got != "2" {
			t.Errorf("the other listener gets %q", got)
		}
		if err := <-reported; !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("reported: %v", err)
		}
	})
}

func TestSharedValueReturnsCopies(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		seed := []byte("1")
		v := shared.NewSharedValue(s.client, path, seed)
		seed[0] = 'x'
		s.must(v.Start(s.ctx))
		defer v.Close() //nolint:errcheck // always nil
		v.Value()[0] = 'x'
		v.VersionedValue().Value[0] = 'x'
		value := []byte("2")
		s.must(v.SetValue(s.ctx, value))
		value[0] = 'x'
		if got := string(v.Value()); got != "2" {
			t.Errorf("the value is %q", got)
		}
	})
}

func TestSharedValueInNamespace(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.client.UsingNamespace("team/app"), "1")
		_, err := s.writer.SetData().ForPath(s.ctx, "/team/app"+path, []byte("2"))
		s.must(err)
		s.await(v, "2")
	})
}

func TestSharedValueIsNotCompressed(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.newClient(s.place, framework.WithCompression()), "1")
		s.must(v.SetValue(s.ctx, []byte("2")))
		set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("3"))
		if data, _ := s.stored(); !set || err != nil || data != "3" {
			t.Errorf("%t, %v, the node has %q", set, err, data)
		}
	})
}

// The parents are containers, which a server of ZooKeeper 3.10 removes if they are never used.
func TestSharedValueOfContainersThatWereNeverUsed(t *testing.T) {
	t.Parallel()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		s := &scene{TB: t, ctx: testenv.Context(t), place: place}
		s.client = s.newClient(place)
		s.must(s.client.CreateContainers(s.ctx, "/limits"))
		idle()
		s.ctx = testenv.Context(t)
		v := s.start(s.client, "1")
		idle() // the parent has the node now
		s.ctx = testenv.Context(t)
		s.must(v.SetValue(s.ctx, []byte("2")))
	})
}

// The test is not parallel: it looks at all goroutines.
func TestSharedValueThatRestsHasNoGoroutine(t *testing.T) {
	inScene(t, func(s *scene) {
		v := s.start(s.client, "1")
		s.write("2")
		s.await(v, "2")
		testenv.Eventually(t, func() bool {
			stacks := make([]byte, 1<<20)
			all := string(stacks[:runtime.Stack(stacks, true)])
			return !strings.Contains(all, "/recipes/cache.") && !strings.Contains(all, "waitqueue.(*Serial)")
		}, "the value has no goroutine")
	})
}

// noRetries lets each lost answer reach the caller.
var noRetries = framework.WithRetryPolicy(retry.NTimes(0, time.Millisecond))

// The cache hands over what it has read before the own write when the answer to that is in the copy.
func TestSharedValueOlderStateOfCacheDoesNotReplaceOwnWrite(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewSharedValue(s.client, path, nil)
		want := func(want string) {
			s.Helper()
			if got := string(v.Value()); got != want {
				s.Errorf("the copy is %q, not %q", got, want)
			}
		}
		v.Followed(10, "theirs")
		v.Written(30, "ours")
		v.Followed(20, "theirs before ours")
		want("ours")
		v.Written(25, "ours, answered late")
		want("ours")
		v.Followed(30, "ours")
		want("ours")
		v.Followed(5, "of an ensemble that was restored") // once the cache has the own write, it is right
		want("of an ensemble that was restored")
	})
}

func TestSharedValueCloseEndsStart(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewSharedValue(s.client, path, nil)
		held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 1})
		defer held.Release()
		ended := make(chan error, 1)
		go func() { ended <- v.Start(context.WithoutCancel(s.ctx)) }()
		s.must(held.Wait(s.ctx))
		defer s.place.Faults().RefuseConnects()()
		s.must(v.Close())
		select {
		case err := <-ended:
			s.wantError(err, shared.ErrClosed)
		case <-s.ctx.Done():
			s.Fatal("Start goes on")
		}
	})
}
