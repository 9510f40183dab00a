package builders_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// TestFlightTakesEffectFromItsBeginningWithoutAGap cuts the connection under creates that are under way.
func TestFlightTakesEffectFromItsBeginningWithoutAGap(t *testing.T) {
	t.Parallel()
	const n, cut = 20, 7
	tr := newTree(t)
	proxy := curatortest.NewProxyT(t, testenv.Addr(t))
	client := newClient(t, proxy.Addr()+tr.root)
	creates := []string{"create2"}
	// The cut comes behind the last write, which would fail: answers that are late then count no more.
	held := proxy.Faults().Add(curatortest.Rule{Ops: creates, Count: 1, Action: curatortest.HoldRequest})
	proxy.Faults().Add(curatortest.Rule{
		Ops: creates, Skip: cut, Count: 1, Action: curatortest.CutAfter,
	})
	ctx := testenv.Context(t)
	flight := builders.Pipelined(ctx)
	create := func(i int) builders.Future[string] {
		return client.Create().Submit(flight, fmt.Sprintf("/n%02d", i), []byte{})
	}
	var sent []builders.Future[string]
	for i := range n {
		sent = append(sent, create(i))
	}
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	held.Release()
	lost := 0
	for i, f := range sent {
		_, err := f.Wait(ctx)
		switch {
		case i < cut && err != nil:
			t.Errorf("create %d: %v", i, err)
		case i >= cut && !errors.Is(err, framework.ErrConnectionLoss):
			t.Errorf("create %d behind the cut: %v", i, err)
		case i >= cut:
			lost++
		}
		<-f.Done()
	}
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := create(n).Wait(ctx); !errors.Is(err, builders.ErrNotSent) {
		t.Errorf("create on the next connection: %v", err)
	}
	if got := len(tr.children("")); got < cut+1 || got > n {
		t.Errorf("%d of %d took effect, %d were answered", got, n, n-lost)
	} else {
		for i := range got {
			if name := fmt.Sprintf("/n%02d", i); !tr.exists(name) {
				t.Errorf("%s is missing before the last of %d", name, got)
			}
		}
	}
	testenv.Eventually(t, func() bool { // the loss may not have been reported yet
		_, err := client.Create().Submit(builders.Pipelined(ctx), "/n99", []byte{}).Wait(ctx)
		if err != nil && !errors.Is(err, builders.ErrNotSent) {
			t.Fatalf("create in the next flight: %v", err)
		}
		return err == nil
	}, "a create in the next flight")
}

func TestSubmittedExistsSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	ctx, client := testenv.Context(t), newClient(t, curatortest.NewProxyT(t, testenv.Addr(t)).Addr()+newTree(t).root)
	if _, err := client.Create().ForPath(ctx, "/here", []byte("data")); err != nil {
		t.Fatal(err)
	}
	here, away := client.CheckExists().Submit(ctx, "/here"), client.CheckExists().Submit(ctx, "/away")
	if stat, err := here.Wait(ctx); err != nil || stat == nil || stat.DataLength != 4 {
		t.Errorf("of a node of four bytes: %+v, %v", stat, err)
	}
	if stat, err := away.Wait(ctx); err != nil || stat != nil {
		t.Errorf("of none: %+v, %v", stat, err)
	}
	if _, err := client.CheckExists().Submit(ctx, "no path").Wait(ctx); err == nil {
		t.Error("of what is no path: no error")
	}
}
