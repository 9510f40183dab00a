package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// optionalCalls has a call for each kind of request that some servers do not have.
var optionalCalls = map[string]func(ctx context.Context, client *framework.Client) error{
	"addWatch": func(ctx context.Context, client *framework.Client) error {
		w := callbacks.NewWatcher(func(context.Context, zk.Event) {})
		return client.Watches().Add().UsingWatcher(w).ForPath(ctx, "/node")
	},
	"createContainer": func(ctx context.Context, client *framework.Client) error {
		_, err := client.Create().WithMode(builders.Container).ForPath(ctx, "/container", nil)
		return err
	},
	"createTTL": func(ctx context.Context, client *framework.Client) error {
		_, err := client.Create().WithTTL(time.Hour).WithMode(builders.PersistentWithTTL).ForPath(ctx, "/ttl", nil)
		return err
	},
	"multiRead": func(ctx context.Context, client *framework.Client) error {
		_, err := client.MultiRead().ForReads(ctx, builders.Read{Path: "/node"})
		return err
	},
	"getEphemerals": func(ctx context.Context, client *framework.Client) error {
		_, err := client.GetEphemerals().ForPath(ctx, "/")
		return err
	},
	"getAllChildrenNumber": func(ctx context.Context, client *framework.Client) error {
		_, err := client.GetAllChildrenNumber().ForPath(ctx, "/")
		return err
	},
	"whoAmI": func(ctx context.Context, client *framework.Client) error {
		_, err := client.WhoAmI(ctx)
		return err
	},
}

// A proxy ends the connection at one kind of request. That kind is soon not sent any more, but for a try now and then,
// and its error is the reason. Everything else goes on.
func TestHangUpAtOneKindOfRequestLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for kind, call := range optionalCalls {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, place testenv.Place, connect string, dial framework.Option) {
				log := &lockedBuffer{}
				client := newClient(t, connect, dial, framework.WithRetryPolicy(retry.NTimes(2, 10*time.Millisecond)),
					framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				start(t, client)
				ctx := testenv.Context(t)
				_, err := client.Create().OrSetData().ForPath(ctx, "/node", nil)
				must(t, err)
				faults := place.Faults()
				rule := faults.Add(curatortest.Rule{Ops: []string{kind}, Action: curatortest.CutBefore})
				faults.ResetTrace()
				tries := 60
				if testenv.Real() {
					tries = 3
				}
				for i := range tries {
					err = call(ctx, client)
					if i > 0 && (!errors.Is(err, framework.ErrUnimplemented) || !strings.Contains(err.Error(), kind)) {
						t.Errorf("try %d: the error is %v", i, err)
					}
					_, err = client.SetData().ForPath(ctx, "/node", []byte(fmt.Sprint(i)))
					must(t, err)
					<-time.After(time.Second)
				}
				// Three to begin with. Then the pause doubles from a second on.
				if n := countConnects(faults); n > 3+6 {
					t.Errorf("%d connections:\n%s", n, curatortest.FormatTrace(faults.Trace()))
				}
				if n := strings.Count(log.String(), "a kind of request ends the connections"); n != 1 ||
					!strings.Contains(log.String(), "kind="+kind) {
					t.Errorf("%d lines:\n%s", n, log.String())
				}
				rule.Remove()
				if testenv.Real() {
					return
				}
				<-time.After(5 * time.Minute)
				if err := call(ctx, client); errors.Is(err, framework.ErrUnimplemented) {
					t.Errorf("after the proxy is mended the error is %v", err)
				}
			})
		})
	}
}

func countConnects(faults *curatortest.Faults) (n int) {
	for _, e := range faults.Trace() {
		if e.Op == "connect" && !e.Reply {
			n++
		}
	}
	return n
}

// The answers to earlier requests are lost with the connection too. They are not blamed.
func TestHangUpBehindOtherRequestsIsBlamedOnTheUnknownKind(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, place testenv.Place, connect string, dial framework.Option) {
		client := newClient(t, connect, dial, framework.WithRetryPolicy(retry.NTimes(20, 10*time.Millisecond)))
		start(t, client)
		ctx := testenv.Context(t)
		_, err := client.Create().OrSetData().ForPath(ctx, "/node", nil)
		must(t, err)
		faults := place.Faults()
		faults.Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 3, MayMiss: true})
		faults.Add(curatortest.Rule{Ops: []string{"multiRead"}, Action: curatortest.CutBefore})
		read := make(chan error, 1)
		must(t, client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) { read <- ev.Err }).
			ForPath(ctx, "/node"))
		_, err = client.MultiRead().ForReads(ctx, builders.Read{Path: "/node"})
		if !errors.Is(err, framework.ErrUnimplemented) {
			t.Errorf("the error is %v", err)
		}
		must(t, <-read)
	})
}

// A proxy ends each connection that sets persistent watches again. Their watchers get the end of the watches.
func TestHangUpAtSetWatchesEndsPersistentWatches(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, place testenv.Place, connect string, dial framework.Option) {
		client := newClient(t, connect, dial)
		start(t, client)
		ctx := testenv.Context(t)
		_, err := client.Create().OrSetData().ForPath(ctx, "/node", nil)
		must(t, err)
		ended := make(chan error, 10)
		w := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
			if ev.Type == zk.EventNotWatching {
				ended <- ev.Err
			}
		})
		must(t, client.Watches().Add().UsingWatcher(w).ForPath(ctx, "/node"))
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"setWatches2"}, Action: curatortest.CutBefore})
		faults.CutAll()
		if err := <-ended; !errors.Is(err, framework.ErrUnimplemented) {
			t.Errorf("the watch ends with %v", err)
		}
		_, err = client.GetData().ForPath(ctx, "/node")
		must(t, err)
		if n := countConnects(faults); n > 5 {
			t.Errorf("%d connections:\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// Any server has this kind of request, so that it is retried. The connections do not follow each other at once.
func TestHangUpAtRequestOfAnyServerSlowsReconnects(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, place testenv.Place, connect string, dial framework.Option) {
		if testenv.Real() {
			return // it would take a minute
		}
		client := newClient(t, connect, dial, framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
		start(t, client)
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"getACL"}, Action: curatortest.CutBefore})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := client.GetACL().ForPath(ctx, "/")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if n := countConnects(faults); n > 100 {
			t.Errorf("%d connections in a minute", n)
		}
	})
}

// A guaranteed removal ends the watch in the client, also if the servers hang up at the removal.
func TestHangUpAtGuaranteedRemovalEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.Forever(10*time.Millisecond))
		events := make(chan zk.Event, 100)
		w := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
			if ev.Type != zk.EventSession {
				events <- ev
			}
		})
		if err := f.client.Watches().Add().UsingWatcher(w).ForPath(t.Context(), "/node"); err != nil {
			t.Fatal(err)
		}
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"removeWatches"}, Action: curatortest.CutBefore})
		err := f.client.Watches().Remove(w).Guaranteed().ForPath(t.Context(), "/node")
		if !errors.Is(err, framework.ErrUnimplemented) {
			t.Errorf("the removal: %v", err)
		}
		for len(events) > 0 {
			<-events
		}
		if _, err := f.client.SetData().ForPath(t.Context(), "/node", []byte("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		<-time.After(time.Minute)
		for len(events) > 0 {
			t.Errorf("event %v after the removal", <-events)
		}
	})
}

// The server ends the connections at a write, which has nothing to do with watches. The answer to the request that sets
// the watches again, just before it, is lost with each.
func TestHangUpAtWriteDoesNotEndPersistentWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(5, 10*time.Millisecond))
		if _, err := f.client.Create().ForPath(t.Context(), "/poison", nil); err != nil {
			t.Fatal(err)
		}
		events := make(chan zk.Event, 100)
		w := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
			if ev.Type != zk.EventSession {
				events <- ev
			}
		})
		if err := f.client.Watches().Add().UsingWatcher(w).ForPath(t.Context(), "/node"); err != nil {
			t.Fatal(err)
		}
		rule := f.server.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Path: "/poison", Action: curatortest.CutBefore, Count: 4,
		})
		_, err := f.client.SetData().ForPath(t.Context(), "/poison", []byte("large"))
		if err != nil || rule.Hits() != 4 {
			t.Errorf("the write: %v, %d hits", err, rule.Hits())
		}
		<-time.After(time.Minute)
		for len(events) > 0 {
			ev := <-events
			t.Errorf("event %v %v", ev.Type, ev.Err)
		}
		if _, err := f.client.SetData().ForPath(t.Context(), "/node", []byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if len(events) != 1 {
			t.Errorf("%d events of a change", len(events))
		}
	})
}

// The client sends setWatches2 alone after a connection has ended at it, or at a write behind it. The answer never
// comes, with pings answered: the connection ends all the same.
func TestHangUpWatchesThatAreNeverAnsweredEndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.Forever(10*time.Millisecond))
		w := callbacks.NewWatcher(func(context.Context, zk.Event) {})
		if err := f.client.Watches().Add().UsingWatcher(w).ForPath(t.Context(), "/node"); err != nil {
			t.Fatal(err)
		}
		f.cutAtWrites(2) // the second with the watches not answered
		f.server.Faults().Add(curatortest.Rule{
			Ops: []string{"setWatches2"}, Skip: 1, Count: 1, Action: curatortest.DropReply,
		})
		f.write(t.Context(), t, "data")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.client.GetData().ForPath(ctx, "/node"); err != nil {
			t.Errorf("a read: %v", err)
		}
	})
}
