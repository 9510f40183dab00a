package builders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// exchange is a transaction that takes a node for two others.
func exchange(client *framework.Client, dir string, mode builders.CreateMode) []builders.TransactionOperation {
	op := client.TransactionOp()
	create := op.Create().WithProtection().WithMode(mode)
	return []builders.TransactionOperation{
		create.ForPath(dir+"/n-", []byte("data")), op.Delete().ForPath(dir + "/taken"), create.ForPath(dir+"/below/m-", nil),
	}
}

// of returns those of the nodes that have this part in their names.
func of(nodes []string, part string) []string {
	return slices.DeleteFunc(nodes, func(name string) bool { return !strings.Contains(name, part) })
}

func TestProtectedTransactionWithLostConnectionsTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []builders.CreateMode{builders.Persistent, builders.EphemeralSequential} {
		t.Run(mode.String(), func(t *testing.T) {
			cutEverywhere(t, 1, []string{"/taken", "/below"}, func(t *trial) {
				var zxid int64
				b := t.client.Transaction().StoringZxidIn(&zxid)
				ev := succeed(t, t.w.transaction(t, b, exchange(t.client, t.dir, mode)...))
				nodes, below := of(t.tr.children(t.full), "n-"), t.tr.children(t.full+"/below")
				if len(nodes) != 1 || len(below) != 1 || !zkpath.IsProtected(nodes[0]) || !zkpath.IsProtected(below[0]) {
					t.Fatalf("nodes %q and %q", nodes, below)
				}
				for i := range ev.Results {
					ev.Results[i].Stat = nil // there where the server gives it and the answer was not lost
				}
				equal(t, "results", ev.Results, []callbacks.OperationResult{
					{Type: callbacks.OperationCreate, ForPath: t.dir + "/n-", ResultPath: t.dir + "/" + nodes[0]},
					{Type: callbacks.OperationDelete, ForPath: t.dir + "/taken"},
					{Type: callbacks.OperationCreate, ForPath: t.dir + "/below/m-", ResultPath: t.dir + "/below/" + below[0]},
				})
				if taken := of(t.tr.children(t.full), "taken"); len(taken) != 0 {
					t.Error("it was not taken")
				}
				_, stat := t.tr.read(t.full + "/" + nodes[0])
				equal(t, "zxid", zxid, stat.Czxid)
			})
		})
	}
}

func TestProtectedTransactionThatIsGivenUpLeavesNoNode(t *testing.T) {
	t.Parallel()
	cutEverywhere(t, 2, []string{"/taken", "/below"}, func(t *trial) {
		ev := t.w.transaction(t, t.client.Transaction(), exchange(t.client, t.dir, builders.EphemeralSequential)...)
		if ev.Err == nil {
			equal(t, "nodes", len(of(t.tr.children(t.full), "n-")), 1)
			return
		}
		if !errors.Is(ev.Err, framework.ErrConnectionLoss) {
			t.Errorf("error is %v", ev.Err)
		}
		testenv.Eventually(t, func() bool {
			return len(of(t.tr.children(t.full), "n-"))+len(t.tr.children(t.full+"/below")) == 0
		}, "no node is left")
	})
}

func TestProtectedTransactionWhoseContextEndsLeavesNoNode(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*curatortest.Proxy, *curatortest.Injection){
		"goes on": func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() },
		"is lost": func(p *curatortest.Proxy, _ *curatortest.Injection) { p.Faults().CutAll() },
	}
	for what, action := range map[string]curatortest.Action{
		"request": curatortest.HoldRequest, "answer": curatortest.HoldReply,
	} {
		for how, end := range ends {
			t.Run(fmt.Sprintf("the %s %s", what, how), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t, framework.WithNamespace("ns"))
				for _, path := range []string{"/d", "/d/taken", "/d/below"} {
					succeed(t, foreground.create(t, client.Create(), path, nil))
				}
				rule := curatortest.Rule{Ops: []string{"multi"}, Action: action}
				in, err := held(t, proxy, rule, func(ctx context.Context) error {
					_, err := client.Transaction().ForOperations(ctx, exchange(client, "/d", builders.PersistentSequential)...)
					return err
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v", err)
				}
				end(proxy, in)
				in.Remove()
				testenv.Eventually(t, func() bool {
					return len(of(tr.children("/ns/d"), "n-"))+len(tr.children("/ns/d/below")) == 0
				}, "no node is left")
				for range 2 { // a late request is answered ahead of the first, and what that leads to ahead of the second
					succeed(t, foreground.sync(t, client.Sync(), "/"))
				}
				if nodes := append(of(tr.children("/ns/d"), "n-"), tr.children("/ns/d/below")...); len(nodes) != 0 {
					t.Errorf("nodes %q are left", nodes)
				}
			})
		}
	}
}

// The nodes that are protected are of this call and of no other. What else it has done may have been built on.
func TestProtectedTransactionThatIsGivenUpLeavesTheRest(t *testing.T) {
	t.Parallel()
	type fault struct {
		action curatortest.Action
		after  func(*curatortest.Proxy, *curatortest.Injection) // when the caller has gone
		takes  bool                                             // it takes effect
	}
	release := func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() }
	cut := func(p *curatortest.Proxy, _ *curatortest.Injection) { p.Faults().CutAll() }
	for name, f := range map[string]fault{
		"request goes on": {curatortest.HoldRequest, release, true},
		"request is lost": {curatortest.HoldRequest, cut, false},
		"answer goes on":  {curatortest.HoldReply, release, true},
		"answer is lost":  {curatortest.HoldReply, cut, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, tr, proxy := setUpProxied(t)
			for _, path := range []string{"/d", "/d/below", "/d/set", "/d/taken", "/d/kept"} {
				tr.make(path, "old")
			}
			op := client.TransactionOp()
			ops := []builders.TransactionOperation{
				op.Create().WithProtection().WithMode(builders.EphemeralSequential).ForPath("/d/n-", nil),
				op.Create().ForPath("/d/plain", []byte("plain")),
				op.Create().WithMode(builders.PersistentSequential).ForPath("/d/below/s-", nil),
				op.SetData().ForPath("/d/set", []byte("new")),
				op.Delete().ForPath("/d/taken"),
				op.Create().WithProtection().ForPath("/d/m", nil),
			}
			var results []callbacks.OperationResult
			in, err := held(t, proxy, curatortest.Rule{Ops: []string{"multi"}, Action: f.action},
				func(ctx context.Context) (err error) {
					results, err = client.Transaction().ForOperations(ctx, ops...)
					return err
				})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, framework.ErrUncertain) ||
				!framework.MayHaveTakenEffect(err) || results != nil {
				t.Errorf("results %v, error %v", results, err)
			}
			f.after(proxy, in)
			in.Remove()
			for range 2 { // a late request is answered ahead of the first, and what that leads to ahead of the second
				succeed(t, foreground.sync(t, client.Sync(), "/"))
			}
			testenv.Eventually(t, func() bool {
				nodes := tr.children("/d")
				return len(of(slices.Clone(nodes), "n-"))+len(of(nodes, "-m")) == 0
			}, "no protected node is left")
			nodes := tr.children("/d")
			data, _ := tr.read("/d/set")
			if !f.takes {
				equal(t, "nodes", nodes, []string{"below", "kept", "set", "taken"})
				equal(t, "data", data, "old")
				return
			}
			equal(t, "nodes", nodes, []string{"below", "kept", "plain", "set"})
			equal(t, "data", data, "new")
			equal(t, "sequential nodes", len(tr.children("/d/below")), 1)
		})
	}
}

// Whether it has taken effect is not known: the refusal of the search is no result of its operations.
func TestProtectedTransactionThatCannotBeLookedForHasNoResults(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			tr.make("/d", "")
			permit := func(acl []zk.ACL) {
				t.Helper()
				if _, err := tr.conn.SetACL(tr.root+"/d", acl, -1); err != nil {
					t.Fatal(err)
				}
			}
			permit(zk.WorldACL(zk.PermAll &^ zk.PermRead))
			defer permit(builders.OpenACL)
			proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.CutAfter, Count: 1})
			ev := w.transaction(t, client.Transaction(),
				client.TransactionOp().Create().WithProtection().ForPath("/d/n", nil))
			if !errors.Is(ev.Err, zk.ErrNoAuth) || ev.Results != nil {
				t.Errorf("results %v, error %v", ev.Results, ev.Err)
			}
		})
	}
}

// What it has created is about to vanish with the session: nothing may be built on that.
func TestProtectedTransactionOfAnEarlierSessionHasFailed(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
	for _, path := range []string{"/d", "/d/taken", "/d/below"} {
		succeed(t, foreground.create(t, client.Create(), path, nil))
	}
	cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.CutAfter, Count: 1})
	restore := proxy.Faults().RefuseConnects()
	failed := make(chan error, 1)
	go func() {
		_, err := client.Transaction().ForOperations(testenv.Context(t),
			exchange(client, "/d", builders.EphemeralSequential)...)
		failed <- err
	}()
	if err := cut.Wait(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := client.Reset(); err != nil { // the nodes of the session remain until its timeout
		t.Fatal(err)
	}
	restore()
	if err := receive(t, failed); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("error is %v", err)
	}
	testenv.Eventually(t, func() bool {
		return len(of(tr.children("/d"), "n-"))+len(tr.children("/d/below")) == 0
	}, "no node is left")
}
