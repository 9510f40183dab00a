package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/retry"
)

// The answer to the first write is lost. Its next attempt has two requests, and the second write waits for both.
func TestOrderRetriedOrSetDataStaysBeforeNewerWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.cutAtWrites(1)
		err := f.client.Create().OrSetData().InBackground(func(_ context.Context, ev callbacks.Event) {
			f.reports <- "first"
		}).ForPath(t.Context(), "/node", []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first one waits for its retry
		f.write(t.Context(), t, "second")
		f.wants(t, "second", "first", "second")
	})
}

// Two protected sequential creates, as of a queue.
func TestOrderRetriedProtectedCreateStaysBeforeNewerCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"create", "create2"}, Count: 1, Action: curatortest.CutBefore})
		names := map[string]string{}
		for _, data := range []string{"first", "second"} {
			err := f.client.Create().WithProtection().WithMode(builders.PersistentSequential).
				InBackground(func(_ context.Context, ev callbacks.Event) {
					if ev.Err == nil {
						names[data] = ev.Name[len(ev.Name)-10:]
					}
					f.reports <- data
				}).ForPath(t.Context(), "/node/i-", []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		got := []string{<-f.reports, <-f.reports}
		if diff := cmp.Diff([]string{"first", "second"}, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if names["first"] > names["second"] {
			t.Errorf("the first has the number %s, the second %s", names["first"], names["second"])
		}
	})
}

// A guaranteed delete, and the create of the next node at that path.
func TestOrderRetriedDeleteStaysBeforeNewerCreate(t *testing.T) {
	for _, children := range []bool{false, true} {
		t.Run(fmt.Sprint(children), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOrderFixture(t, retry.NTimes(3, time.Second))
				f.server.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.CutBefore})
				d := f.client.Delete().Guaranteed()
				if children {
					d = f.client.Delete().DeletingChildrenIfNeeded()
				}
				err := d.InBackground(func(_ context.Context, ev callbacks.Event) { f.reports <- "first" }).
					ForPath(t.Context(), "/node")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				err = f.client.Create().InBackground(func(_ context.Context, ev callbacks.Event) {
					if ev.Err != nil {
						t.Error(ev.Err)
					}
					f.reports <- "second"
				}).ForPath(t.Context(), "/node", []byte("second"))
				if err != nil {
					t.Fatal(err)
				}
				f.wants(t, "second", "first", "second")
			})
		})
	}
}

// The server ends the connection at one write, as at one that is larger than it reads. The policy never gives up. After
// ten connections in a row the write has no place any more.
func TestOrderWriteThatEndsEachConnectionLetsOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.Forever(10*time.Millisecond))
		if _, err := f.client.Create().ForPath(t.Context(), "/poison", nil); err != nil {
			t.Fatal(err)
		}
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Path: "/poison", Action: curatortest.CutBefore})
		if err := f.client.SetData().InBackground(nil).ForPath(t.Context(), "/poison", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := f.client.GetData().ForPath(ctx, "/node"); err != nil {
			t.Errorf("a read: %v", err)
		}
	})
}

// A transaction with a protected create, whose answer is lost.
func TestOrderRetriedProtectedTransactionStaysBeforeNewerWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
		op := f.client.TransactionOp()
		err := f.client.Transaction().InBackground(func(_ context.Context, ev callbacks.Event) { f.reports <- "first" }).
			ForOperations(t.Context(), op.Create().WithProtection().ForPath("/p", nil),
				op.SetData().ForPath("/node", []byte("first")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.write(t.Context(), t, "second")
		f.wants(t, "second", "first", "second")
	})
}
