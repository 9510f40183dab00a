package builders_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestTransactionResultsAreInOrder(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				prefix := map[string]string{"": "", "ns": "/ns"}[ns]
				succeed(t, w.create(t, client.Create(), "/set", nil))
				succeed(t, w.create(t, client.Create(), "/deleted", nil))
				op := client.TransactionOp()
				ev := succeed(t, w.transaction(t, client.Transaction(),
					op.Create().ForPath("/a", []byte("one")),
					op.Create().ForPath("/a/b", []byte("two")), // below the one before
					op.Check().ForPath("/set"),
					op.SetData().WithVersion(0).ForPath("/set", []byte("three")),
					op.SetData().WithVersion(1).ForPath("/set", []byte("four")),
					op.Check().WithVersion(2).ForPath("/set"),
					op.Delete().WithVersion(0).ForPath("/deleted"),
					op.Create().WithMode(builders.EphemeralSequential).ForPath("/a/", nil),
				))
				equal(t, "data", string(succeed(t, w.getData(t, client.GetData(), "/set")).Data), "four")
				if tr.exists(prefix + "/deleted") {
					t.Error("it is still there")
				}
				// What the server says of a node in between is not what it is at the end.
				for i, want := range map[int]int32{3: 1, 4: 2} {
					if got := ev.Results[i].Stat; got == nil || got.Version != want {
						t.Errorf("stat of operation %d is %v, want version %d", i, got, want)
					}
				}
				ev.Results[3].Stat, ev.Results[4].Stat = nil, nil
				statsOfCreates(t, ev.Results)
				const sequential = "/a/0000000001"
				equal(t, "results", ev.Results, []callbacks.OperationResult{
					{Type: callbacks.OperationCreate, ForPath: "/a", ResultPath: "/a"},
					{Type: callbacks.OperationCreate, ForPath: "/a/b", ResultPath: "/a/b"},
					{Type: callbacks.OperationCheck, ForPath: "/set"},
					{Type: callbacks.OperationSetData, ForPath: "/set"},
					{Type: callbacks.OperationSetData, ForPath: "/set"},
					{Type: callbacks.OperationCheck, ForPath: "/set"},
					{Type: callbacks.OperationDelete, ForPath: "/deleted"},
					{Type: callbacks.OperationCreate, ForPath: "/a/", ResultPath: sequential},
				})
				if _, stat := tr.read(prefix + sequential); stat.EphemeralOwner != client.SessionID() {
					t.Errorf("owner is %x", stat.EphemeralOwner)
				}
			}
		})
	}
}

func TestOneFailureAbortsATransaction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fail func(op builders.TransactionOp) builders.TransactionOperation
		want error
	}{
		{"create", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Create().ForPath("/there", nil)
		}, zk.ErrNodeExists},
		{"create without a parent", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Create().ForPath("/none/n", nil)
		}, zk.ErrNoNode},
		{"delete", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Delete().ForPath("/none")
		}, zk.ErrNoNode},
		{"delete of another version", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Delete().WithVersion(7).ForPath("/there")
		}, zk.ErrBadVersion},
		{"setData of another version", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.SetData().WithVersion(7).ForPath("/there", nil)
		}, zk.ErrBadVersion},
		{"check", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Check().ForPath("/none")
		}, zk.ErrNoNode},
		{"check of another version", func(op builders.TransactionOp) builders.TransactionOperation {
			return op.Check().WithVersion(7).ForPath("/there")
		}, zk.ErrBadVersion},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t)
					tr.make("/there", "data")
					op := client.TransactionOp()
					failing := tt.fail(op)
					ev := w.transaction(t, client.Transaction(),
						op.Create().ForPath("/n", nil),
						op.SetData().ForPath("/there", []byte("changed")),
						failing,
						op.Delete().ForPath("/n"))
					wantErr(t, ev.Err, tt.want, "multi", "")
					equal(t, "nodes", tr.children("/"), []string{"there"})
					data, _ := tr.read("/there")
					equal(t, "data", data, "data")

					if len(ev.Results) != 4 {
						t.Fatalf("%d results", len(ev.Results))
					}
					after := ev.Results[3].Err
					if after == nil {
						t.Error("what was not tried has no error")
					}
					equal(t, "results", ev.Results, []callbacks.OperationResult{
						{Type: callbacks.OperationCreate, ForPath: "/n"},
						{Type: callbacks.OperationSetData, ForPath: "/there"},
						{Type: failing.Type(), ForPath: failing.Path(), Err: tt.want},
						{Type: callbacks.OperationDelete, ForPath: "/n", Err: after},
					}, sameError)
				})
			}
		})
	}
}

func TestTransactionCreatesEveryMode(t *testing.T) {
	t.Parallel()
	all := givesStatsOfCreates(t)
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				prefix := map[string]string{"": "", "ns": "/ns"}[ns]
				op := client.TransactionOp()
				ops := []builders.TransactionOperation{op.Create().ForPath("/kept", nil)}
				for m := builders.Persistent; m <= builders.PersistentSequentialWithTTL; m++ {
					c := op.Create().WithMode(m)
					if m.HasTTL() {
						c = c.WithTTL(time.Millisecond)
					}
					ops = append(ops, c.ForPath("/"+m.String()+"-", nil))
				}
				ev := succeed(t, w.transaction(t, client.Transaction(), ops...))
				for i, r := range ev.Results[1:] {
					m := builders.CreateMode(i)
					want := "/" + m.String() + "-"
					if !strings.HasPrefix(r.ResultPath, want) || (len(r.ResultPath) > len(want)) != m.IsSequential() {
						t.Errorf("path of %v is %q", m, r.ResultPath)
					}
					wantStat := all || m == builders.Container || m.HasTTL()
					if given := r.Stat != nil; given != wantStat || given && r.Stat.Czxid == 0 {
						t.Errorf("stat of %v is %v", m, r.Stat)
					}
					if m == builders.Container || m.HasTTL() {
						continue
					}
					_, stat := tr.read(prefix + r.ResultPath)
					equal(t, "owner of "+r.ResultPath, stat.EphemeralOwner != 0, m.IsEphemeral())
				}
				container := prefix + ev.Results[1+builders.Container].ResultPath
				tr.make(container+"/child", "")
				tr.remove(container + "/child")
				tr.awaitGone(container)
				tr.awaitGone(prefix + ev.Results[1+builders.PersistentWithTTL].ResultPath)
				tr.awaitGone(prefix + ev.Results[1+builders.PersistentSequentialWithTTL].ResultPath)
				if !tr.exists(prefix + "/kept") {
					t.Error("the persistent node is gone")
				}
			}
		})
	}
}

func TestTransactionACL(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			given := append(zk.DigestACL(zk.PermAll, "user", "secret"), builders.OpenACL...)
			provided := append(zk.DigestACL(zk.PermAll, "provider", "secret"), builders.OpenACL...)
			client, tr := setUp(t, framework.WithACLProvider(builders.FixedACL(provided)))
			op := client.TransactionOp().Create()
			succeed(t, w.transaction(t, client.Transaction(),
				op.WithACL(given...).ForPath("/given", nil), op.ForPath("/provided", nil)))
			equal(t, "ACL", tr.acl("/given"), given)
			equal(t, "ACL", tr.acl("/provided"), provided)
		})
	}
}

func TestTransactionMixesCompressedAndNot(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, compression := range []framework.Option{framework.WithoutCompression(), framework.WithCompression()} {
				client, tr := setUp(t, compression)
				op := client.TransactionOp()
				data := []byte("data")
				succeed(t, w.transaction(t, client.Transaction(),
					op.Create().Compressed().ForPath("/packed", data),
					op.Create().Uncompressed().ForPath("/plain", data),
					op.SetData().Uncompressed().ForPath("/packed", data),
					op.SetData().Compressed().ForPath("/packed", data),
					op.SetData().Compressed().ForPath("/plain", data),
					op.SetData().Uncompressed().ForPath("/plain", data),
				))
				stored, _ := tr.read("/plain")
				equal(t, "stored plain", stored, "data")
				ev := succeed(t, w.getData(t, client.GetData().Decompressed(), "/packed"))
				equal(t, "read packed", string(ev.Data), "data")
			}
		})
	}
}

func TestTransactionThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			transaction, op := client.Transaction(), client.TransactionOp()
			good := op.Create().ForPath("/n", nil)
			ev := w.transaction(t, transaction)
			wantErr(t, ev.Err, builders.ErrBadArguments, "multi", "")
			ev = w.transaction(t, transaction, good, builders.TransactionOperation{})
			wantErr(t, ev.Err, builders.ErrBadArguments, "multi", "")
			ev = w.transaction(t, transaction, good, op.Delete().ForPath("n"))
			wantErr(t, ev.Err, zk.ErrInvalidPath, "delete", "n")
			equal(t, "nodes", tr.children("/"), []string{})
		})
	}
}

// An operation belongs to the client that it is built with: its namespace counts.
func TestTransactionAcrossNamespaces(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			one, two := client.UsingNamespace("one"), client.UsingNamespace("two/deep")
			ev := succeed(t, w.transaction(t, client.Transaction(),
				client.TransactionOp().Create().ForPath("/n", nil),
				one.TransactionOp().Create().ForPath("/n", nil),
				two.TransactionOp().Create().WithMode(builders.PersistentSequential).ForPath("/", nil),
				one.TransactionOp().Create().ForPath("/one", nil),
			))
			var paths []string
			for _, r := range ev.Results {
				paths = append(paths, r.ResultPath)
			}
			equal(t, "paths", paths, []string{"/n", "/n", "/0000000000", "/one"})
			equal(t, "nodes", tr.children("/"), []string{"n", "one", "two"})
			equal(t, "nodes in one", tr.children("/one"), []string{"n", "one"})
			equal(t, "nodes in two", tr.children("/two/deep"), []string{"0000000000"})
		})
	}
}

func TestTransactionOfANamespaceThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			bad := client.UsingNamespace("a//b")
			for verb, op := range map[string]builders.TransactionOperation{
				"create":  bad.TransactionOp().Create().ForPath("/n", nil),
				"delete":  bad.TransactionOp().Delete().ForPath("/n"),
				"setData": bad.TransactionOp().SetData().ForPath("/n", nil),
				"check":   bad.TransactionOp().Check().ForPath("/n"),
			} {
				ev := w.transaction(t, client.Transaction(), client.TransactionOp().Create().ForPath("/x", nil), op)
				wantErr(t, ev.Err, zk.ErrInvalidPath, verb, "/n")
			}
			equal(t, "nodes", tr.children("/"), []string{})
		})
	}
}

func TestOperationsOfATransactionAreValues(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	op := client.TransactionOp().Create().WithMode(builders.PersistentSequential).ForPath("/n", []byte("data"))
	ops := []builders.TransactionOperation{op, op}
	for range 2 {
		if _, err := client.Transaction().ForOperations(ctx, ops...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"n0000000000", "n0000000001", "n0000000002", "n0000000003"}
	equal(t, "nodes", tr.children("/"), want)
	equal(t, "type", op.Type(), callbacks.OperationCreate)
	equal(t, "path", op.Path(), "/n")
}
