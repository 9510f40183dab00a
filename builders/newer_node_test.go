package builders_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// A write to a version of a node is lost. Before the next try another client deletes the node, and creates one whose
// versions have come to the same: what it has written stays.
func TestWriteToVersionRetriedSparesNewerNode(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tb testing.TB, w way, client *framework.Client) callbacks.Event{
		"setData": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			return w.setData(tb, client.SetData().WithVersion(0), "/n", []byte("late"))
		},
		"idempotent setData": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			return w.setData(tb, client.SetData().Idempotent().WithVersion(0), "/n", []byte("late"))
		},
		"setACL": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			return w.setACL(tb, client.SetACL().WithACL(zk.WorldACL(zk.PermRead)...).WithVersion(0), "/n")
		},
		"setData in a transaction": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			op := client.TransactionOp()
			return w.transaction(tb, client.Transaction(),
				op.SetData().ForPath("/other", nil), op.SetData().WithVersion(0).ForPath("/n", []byte("late")))
		},
		"delete in a transaction": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			return w.transaction(tb, client.Transaction(), client.TransactionOp().Delete().WithVersion(0).ForPath("/n"))
		},
		"check in a transaction": func(tb testing.TB, w way, client *framework.Client) callbacks.Event {
			tb.Helper()
			op := client.TransactionOp()
			return w.transaction(tb, client.Transaction(),
				op.Check().WithVersion(0).ForPath("/n"), op.Delete().ForPath("/other"))
		},
	} {
		for _, w := range ways {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t)
				succeed(t, foreground.create(t, client.Create(), "/n", []byte("ours")))
				succeed(t, foreground.create(t, client.Create(), "/other", nil))
				acl := tr.acl("/n")
				proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"setData", "setACL", "multi"}, Count: 1, Action: curatortest.CutBefore,
				})
				next := proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"setData", "setACL", "multi"}, Skip: 1, Count: 1, Action: curatortest.HoldRequest,
				})
				done := make(chan callbacks.Event, 1)
				go func() { done <- write(t, w, client) }()
				if err := next.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				tr.remove("/n")
				tr.make("/n", "theirs")
				next.Release()
				if err := receive(t, done).Err; !errors.Is(err, builders.ErrUncertain) {
					t.Errorf("the error is %v", err)
				}
				if !tr.exists("/n") || !tr.exists("/other") {
					t.Fatal("a node is deleted")
				}
				if data, stat := tr.read("/n"); data != "theirs" || stat.Version != 0 {
					t.Errorf("the node has %q in version %d", data, stat.Version)
				}
				equal(t, "ACL", tr.acl("/n"), acl)
			})
		}
	}
}

// The node is the one that the program knows: the next try writes.
func TestWriteToVersionRetriedTakesSameNode(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			tr.make("/n", "first")
			succeed(t, w.getData(t, client.GetData(), "/n"))
			op := client.TransactionOp()
			lose := func() {
				proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"setData", "setACL", "multi"}, Count: 1, Action: curatortest.CutBefore,
				})
			}
			lose()
			succeed(t, w.setData(t, client.SetData().WithVersion(0), "/n", []byte("second")))
			lose()
			succeed(t, w.transaction(t, client.Transaction(), op.SetData().WithVersion(1).ForPath("/n", []byte("third"))))
			lose()
			succeed(t, w.setACL(t, client.SetACL().WithACL(builders.OpenACL...).WithVersion(0), "/n"))
			if data, stat := tr.read("/n"); data != "third" || stat.Version != 2 || stat.Aversion != 1 {
				t.Errorf("the node has %q, %+v", data, stat)
			}
		})
	}
}
