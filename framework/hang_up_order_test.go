package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/retry"
)

// An idempotent write with a version takes effect, and its answer is lost. The next write is submitted while there is
// no connection. The retry of the first has two requests: the write, which is refused, and a read that shows that it
// was the first attempt's. The second write goes between them, so that the first reports BadVersion: that it has not
// taken effect.
func TestOrderIdempotentSetDataThatTookEffectSucceedsAheadOfNewerWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.NTimes(3, time.Second))
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		var stat zk.Stat
		if _, err := f.client.GetData().StoringStatIn(&stat).ForPath(t.Context(), "/node"); err != nil {
			t.Fatal(err)
		}
		first := make(chan error, 1)
		err := f.client.SetData().WithVersion(stat.Version).Idempotent().
			InBackground(func(_ context.Context, ev callbacks.Event) { first <- ev.Err }).
			ForPath(t.Context(), "/node", []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // its retry waits
		second := make(chan error, 1)
		err = f.client.SetData().InBackground(func(_ context.Context, ev callbacks.Event) { second <- ev.Err }).
			ForPath(t.Context(), "/node", []byte("second"))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first write, which took effect: %v", err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// The server ends the connection at a write of another node, as at one that is larger than it reads. The write ahead of
// it has no answer by then, each time. It is not the reason, so it keeps its place: without it, its data
// would overwrite that of a newer write to its node.
func TestOrderWriteAheadOfOneThatEndsConnectionsKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.Forever(10*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := f.client.Create().ForPath(ctx, "/poison", nil); err != nil {
			t.Fatal(err)
		}
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Path: "/poison", Action: curatortest.CutBefore})
		slow := f.server.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Path: "/node", Action: curatortest.HoldReply, MayMiss: true,
		})
		done := make(chan string, 3)
		write := func(path, data string) {
			err := f.client.SetData().InBackground(func(_ context.Context, ev callbacks.Event) { done <- data }).
				ForPath(ctx, path, []byte(data))
			if err != nil {
				t.Fatal(err)
			}
		}
		write("/node", "first")
		write("/poison", "poison")
		synctest.Wait()
		write("/node", "second")
		<-time.After(30 * time.Second)
		f.server.Faults().CutAll()
		slow.Remove()
		ends := []string{<-done, <-done}
		data, err := f.client.GetData().ForPath(ctx, "/node")
		if err != nil || string(data) != "second" {
			t.Errorf("the node has %q, %v; ends %v", data, err, ends)
		}
	})
}
