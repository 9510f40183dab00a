package builders_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// CURATOR-666.
func TestNamespaceIsTakenOffOnce(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("zoo"))
			b := client.Create().CreatingParentsIfNeeded()
			equal(t, "name", succeed(t, w.create(t, b, "/zoo/a", nil)).Name, "/zoo/a")
			equal(t, "nodes", tr.children("/zoo/zoo"), []string{"a"})
			equal(t, "name", succeed(t, w.create(t, b.OrSetData(), "/zoo/a", nil)).Name, "/zoo/a")
			equal(t, "name", succeed(t, w.create(t, b, "/zooa", nil)).Name, "/zooa")
			op := client.TransactionOp().Create().ForPath("/zoo/b", nil)
			ev := succeed(t, w.transaction(t, client.Transaction(), op))
			equal(t, "path", ev.Results[0].ResultPath, "/zoo/b")
			ev = succeed(t, w.create(t, b.WithMode(builders.PersistentSequential), "/zoo/", nil))
			equal(t, "name", ev.Name, "/zoo/0000000002")

			watcher, events := chanWatcher()
			succeed(t, w.exists(t, client.CheckExists().UsingWatcher(watcher), "/zoo/c"))
			tr.make("/zoo/zoo/c", "")
			equal(t, "path of the event", receive(t, events).Path, "/zoo/c")
		})
	}
}

func TestNamespaceIsMadeOfContainersAheadOfTheFirstOperation(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("my/ns"))
			succeed(t, w.exists(t, client.CheckExists(), "/"))
			equal(t, "nodes", tr.children("/my"), []string{"ns"})
			succeed(t, w.create(t, client.Create(), "/n", nil)) // without making parents
			succeed(t, w.delete(t, client.Delete(), "/n"))
			tr.awaitGone("/my/ns")
			tr.awaitGone("/my")
			// A namespace that the server has removed because it was empty is made again.
			for _, b := range []builders.Create{client.Create(), client.Create().WithProtection()} {
				name := succeed(t, w.create(t, b, "/n", nil)).Name
				succeed(t, w.delete(t, client.Delete(), name))
				tr.awaitGone("/my")
			}
			err := w.create(t, client.Create(), "/a/n", nil).Err // but no other parent
			wantErr(t, err, zk.ErrNoNode, "create", "/a/n")
		})
	}
}

// All of the operations that begin at the same time find the namespace there, not only the one that makes it.
func TestNamespaceConcurrentFirstUseFindsIt(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	ctx := testenv.Context(t)
	for round := range 100 {
		view := client.UsingNamespace(fmt.Sprintf("many/ns%d", round))
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range 8 {
			op := view.TransactionOp().Create().ForPath(fmt.Sprintf("/n%d", i), nil)
			wg.Go(func() {
				<-begin
				if _, err := view.Transaction().ForOperations(ctx, op); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// What makes the namespace may be lost with the connection: it is made ahead of the next operation then.
func TestNamespaceWhoseCreationIsLostIsMadeAheadOfTheNextOperation(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, framework.WithNamespace("my/ns"),
				framework.WithRetryPolicy(retry.NTimes(0, 0)))
			proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"createContainer"}, Action: curatortest.CutBefore, Count: 1,
			})
			err := w.exists(t, client.CheckExists(), "/n").Err
			if err != nil { // it may have been lost too, or not
				wantErr(t, err, framework.ErrConnectionLoss, "exists", "/n")
			}
			if err := client.BlockUntilConnected(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			succeed(t, background.sync(t, client.UsingNamespace("").Sync(), "/")) // behind the report of the loss
			op := client.TransactionOp().Create().ForPath("/n", nil)
			succeed(t, w.transaction(t, client.Transaction(), op))
			equal(t, "nodes", tr.children("/my/ns"), []string{"n"})
		})
	}
}

func TestNamespaceThatCannotBe(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	bad := client.UsingNamespace("a//b")
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, err := range []error{
				w.create(t, bad.Create(), "/n", nil).Err,
				w.delete(t, bad.Delete(), "/n").Err,
				w.exists(t, bad.CheckExists(), "/n").Err,
				w.getData(t, bad.GetData(), "/n").Err,
				w.setData(t, bad.SetData(), "/n", nil).Err,
				w.getChildren(t, bad.GetChildren(), "/n").Err,
				w.getACL(t, bad.GetACL(), "/n").Err,
				w.setACL(t, bad.SetACL().WithACL(builders.OpenACL...), "/n").Err,
				w.sync(t, bad.Sync(), "/n").Err,
				w.transaction(t, bad.Transaction(), client.TransactionOp().Create().ForPath("/n", nil)).Err,
			} {
				var opErr *builders.OpError
				if !errors.Is(err, zk.ErrInvalidPath) || !errors.As(err, &opErr) {
					t.Errorf("error is %v", err)
				}
			}
			_, err := bad.Create().Submit(testenv.Context(t), "/n", nil).Wait(testenv.Context(t))
			wantErr(t, err, zk.ErrInvalidPath, "create", "/n")
		})
	}
	equal(t, "nodes", tr.children("/"), []string{})
}
