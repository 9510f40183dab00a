package framework_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// The servers know the kind, and hang up on one create, as on one that is larger than they read. No other is refused.
func TestHangUpAtOneCreateLeavesItsKind(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]builders.CreateMode{
		"ttl": builders.PersistentWithTTL, "container": builders.Container,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newOrderFixture(t, retry.Forever(time.Second))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				create := func(path string, data []byte) error {
					op := f.client.Create().WithMode(mode)
					if mode != builders.Container {
						op = op.WithTTL(time.Hour)
					}
					_, err := op.ForPath(ctx, path, data)
					return err
				}
				for i := range 100 {
					must(t, create(numbered("/before", i), nil))
				}
				f.server.Faults().Add(curatortest.Rule{
					Ops: []string{"createTTL", "createContainer"}, Path: "/large", Action: curatortest.CutBefore,
				})
				large := make(chan error, 1)
				go func() { large <- create("/large", bytes.Repeat([]byte("x"), 1000_000)) }()
				<-time.After(50 * time.Millisecond)
				refused := 0
				for i := range 600 {
					if errors.Is(create(numbered("/n", i), nil), framework.ErrUnimplemented) {
						refused++
					}
					<-time.After(100 * time.Millisecond)
				}
				if refused > 0 {
					t.Errorf("%d of 600 creates are refused", refused)
				}
				cancel()
				<-large
			})
		})
	}
}

// The servers of a client do not know containers. Its ensemble provider then names others, which do.
func TestOtherEnsembleIsAskedForKindsThatTheOldOneLacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := curatortest.NewServerT(t, curatortest.WithoutPort())
		young := curatortest.NewServerT(t, curatortest.WithoutPort())
		old.Faults().Add(curatortest.Rule{
			Ops: []string{"createContainer"}, Action: curatortest.ReplyErrorThenCut, Err: framework.ErrUnimplemented,
		})
		ensemble := struct{ framework.EnsembleProvider }{framework.FixedEnsemble("192.0.2.1:2181")}
		client := startClient(t, "", framework.WithEnsembleProvider(ensemble), framework.WithoutEnsembleTracker(),
			framework.WithSessionTimeout(10*time.Second), framework.WithDialer(
				func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "192.0.2.2:2181" {
						return young.DialContext(ctx, network, young.ConnectString())
					}
					return old.DialContext(ctx, network, old.ConnectString())
				}))
		ctx := t.Context()
		_, err := client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, "/a/b", nil)
		must(t, err)
		ensemble.SetConnectionString("192.0.2.2:2181")
		old.Faults().CutAll()
		for young.Faults().Connections() == 0 {
			<-time.After(10 * time.Millisecond)
		}
		_, err = client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, "/a/b", nil)
		must(t, err)
		if n := requests(young, "createContainer"); n != 1 {
			t.Errorf("the other ensemble has got %d creates of containers", n)
		}
	})
}

// A program has once sent a request at which the servers hang up. Hours later, a connection that is lost twice in a
// moment comes back as fast as without that.
func TestHangUpsOfLongAgoDoNotSlowReconnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(29, 10*time.Millisecond))
		ctx := t.Context()
		read := func() {
			_, err := f.client.GetData().ForPath(ctx, "/node")
			must(t, err)
		}
		twoLosses := func() time.Duration {
			start := time.Now()
			for range 2 {
				f.server.Faults().CutAll()
				<-time.After(5 * time.Millisecond)
				read()
			}
			return time.Since(start)
		}
		<-time.After(time.Hour)
		usual := twoLosses()
		rule := f.server.Faults().Add(curatortest.Rule{Ops: []string{"getACL"}, Action: curatortest.CutBefore})
		if _, err := f.client.GetACL().ForPath(ctx, "/node"); err == nil {
			t.Error("no error")
		}
		rule.Remove()
		for range 2 {
			<-time.After(time.Hour)
			read()
		}
		if d := twoLosses(); d > usual {
			t.Errorf("two losses took %v, before the hang-ups %v", d, usual)
		}
	})
}

// A proxy hangs up on setWatches2, after a time in which a client that holds a lock sends quorum heartbeats.
func TestLateHangUpAtSetWatchesEndsPersistentWatches(t *testing.T) {
	t.Parallel()
	for _, beats := range []bool{false, true} {
		t.Run(fmt.Sprintf("heartbeats %t", beats), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOrderFixture(t, retry.Forever(time.Second))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if beats {
					defer f.client.QuorumHeartbeats()()
				}
				ended := make(chan error, 100)
				w := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
					if ev.Type == zk.EventNotWatching {
						ended <- ev.Err
					}
				})
				must(t, f.client.Watches().Add().UsingWatcher(w).ForPath(ctx, "/node"))
				faults := f.server.Faults()
				faults.ResetTrace()
				faults.Add(curatortest.Rule{Ops: []string{"setWatches2"}, Action: curatortest.HoldRequest, MayMiss: true})
				over := make(chan struct{})
				defer close(over)
				go func() { // the proxy
					for n := 0; ; {
						select {
						case <-over:
							return
						case <-time.After(time.Millisecond):
						}
						if now := requests(f.server, "setWatches2"); now > n {
							n = now
							select {
							case <-over:
								return
							case <-time.After(2 * time.Second):
							}
							faults.CutAll()
						}
					}
				}()
				faults.CutAll()
				if _, err := f.client.GetData().ForPath(ctx, "/node"); err != nil {
					t.Errorf("after %d connections: %v", countConnects(faults), err)
				}
				select {
				case <-ended:
				default:
					t.Error("the watch has not ended")
				}
			})
		})
	}
}
