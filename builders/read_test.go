package builders_test

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestExists(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				ev := succeed(t, w.exists(t, client.CheckExists(), "/none"))
				if ev.Stat != nil {
					t.Errorf("absent node has stat %v", ev.Stat)
				}
				if ev = succeed(t, w.exists(t, client.CheckExists(), "/none/below")); ev.Stat != nil {
					t.Errorf("absent node has stat %v", ev.Stat)
				}
				succeed(t, w.create(t, client.Create(), "/n", nil))
				_, stat := tr.read(map[string]string{"": "/n", "ns": "/ns/n"}[ns])
				equal(t, "stat", succeed(t, w.exists(t, client.CheckExists(), "/n")).Stat, &stat)
				if ev = succeed(t, w.exists(t, client.CheckExists(), "/")); ev.Stat == nil {
					t.Error("there is no root")
				}
			}
		})
	}
}

func TestExistsCreatingParents(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("ns"))
			ev := succeed(t, w.exists(t, client.CheckExists().CreatingParentsIfNeeded(), "/a/b/c"))
			if ev.Stat != nil {
				t.Errorf("absent node has stat %v", ev.Stat)
			}
			equal(t, "nodes in /a", tr.children("/ns/a"), []string{"b"})
			equal(t, "nodes in /a/b", tr.children("/ns/a/b"), []string{})
			equal(t, "ACL", tr.acl("/ns/a/b"), builders.OpenACL)

			acl := append(zk.DigestACL(zk.PermAll, "user", "secret"), builders.OpenACL...)
			b := client.CheckExists().CreatingParentContainersIfNeeded().WithACL(acl...)
			succeed(t, w.exists(t, b, "/c/d/e"))
			equal(t, "ACL", tr.acl("/ns/c"), acl)
			equal(t, "ACL", tr.acl("/ns/c/d"), acl)
			tr.make("/ns/c/d/e", "")
			if ev = succeed(t, w.exists(t, b, "/c/d/e")); ev.Stat == nil {
				t.Error("it is there")
			}
			tr.remove("/ns/c/d/e")
			tr.awaitGone("/ns/c")
			if !tr.exists("/ns/a/b") {
				t.Error("the persistent parent is gone")
			}
		})
	}
}

func TestCreateContainers(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t, framework.WithNamespace("ns"))
	for range 2 {
		if err := client.CreateContainers(testenv.Context(t), "/a/b"); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "nodes in /a/b", tr.children("/ns/a/b"), []string{})
	tr.make("/ns/a/b/c", "")
	tr.remove("/ns/a/b/c")
	tr.awaitGone("/ns/a")
}

func TestGetChildren(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				var stored zk.Stat
				b := client.GetChildren().StoringStatIn(&stored)
				for _, name := range []string{"a", "b", "c"} {
					succeed(t, w.create(t, client.Create().CreatingParentsIfNeeded(), "/n/"+name, nil))
				}
				ev := succeed(t, w.getChildren(t, b, "/n"))
				slices.Sort(ev.Children)
				equal(t, "children", ev.Children, []string{"a", "b", "c"})
				_, stat := tr.read(map[string]string{"": "/n", "ns": "/ns/n"}[ns])
				equal(t, "stored stat", stored, stat)
				equal(t, "number", stat.NumChildren, 3)
				ev = succeed(t, w.getChildren(t, b, "/n/a"))
				equal(t, "number", len(ev.Children), 0)
				equal(t, "children of the root", succeed(t, w.getChildren(t, b, "/")).Children, []string{"n"})
				before := stored
				wantErr(t, w.getChildren(t, b, "/none").Err, zk.ErrNoNode, "getChildren", "/none")
				equal(t, "stat after a failure", stored, before)
			}
		})
	}
}

func TestACL(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				full := map[string]string{"": "/n", "ns": "/ns/n"}[ns]
				succeed(t, w.create(t, client.Create(), "/n", nil))
				var stored zk.Stat
				get, set := client.GetACL().StoringStatIn(&stored), client.SetACL()
				equal(t, "ACL", succeed(t, w.getACL(t, get, "/n")).ACL, builders.OpenACL)
				_, stat := tr.read(full)
				equal(t, "stored stat", stored, stat)

				one := append(zk.DigestACL(zk.PermAll, "user", "secret"), builders.OpenACL...)
				ev := succeed(t, w.setACL(t, set.WithACL(one...), "/n"))
				_, stat = tr.read(full)
				equal(t, "stat", ev.Stat, &stat)
				equal(t, "version", stat.Aversion, 1)
				equal(t, "ACL", succeed(t, w.getACL(t, get, "/n")).ACL, one)

				set = set.WithACL(builders.OpenACL...)
				wantErr(t, w.setACL(t, set.WithVersion(0), "/n").Err, zk.ErrBadVersion, "setACL", "/n")
				succeed(t, w.setACL(t, set.WithVersion(1), "/n"))
				equal(t, "ACL", succeed(t, w.getACL(t, get, "/n")).ACL, builders.OpenACL)

				wantErr(t, w.getACL(t, get, "/none").Err, zk.ErrNoNode, "getACL", "/none")
				wantErr(t, w.setACL(t, set, "/none").Err, zk.ErrNoNode, "setACL", "/none")
				err := w.setACL(t, set.WithACL(zk.AuthACL(zk.PermAll)...), "/n").Err
				wantErr(t, err, zk.ErrInvalidACL, "setACL", "/n")
			}
		})
	}
}

func TestReadWithoutPermissionFails(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			tr.make("/n", "")
			if _, err := tr.conn.SetACL(tr.root+"/n", zk.WorldACL(zk.PermAdmin), -1); err != nil {
				t.Fatal(err)
			}
			wantErr(t, w.getData(t, client.GetData(), "/n").Err, zk.ErrNoAuth, "getData", "/n")
			wantErr(t, w.setData(t, client.SetData(), "/n", nil).Err, zk.ErrNoAuth, "setData", "/n")
			wantErr(t, w.getChildren(t, client.GetChildren(), "/n").Err, zk.ErrNoAuth, "getChildren", "/n")
			wantErr(t, w.create(t, client.Create(), "/n/a", nil).Err, zk.ErrNoAuth, "create", "/n/a")
			wantErr(t, w.create(t, client.Create().OrSetData(), "/n", nil).Err, zk.ErrNoAuth, "create", "/n")
		})
	}
}

func TestSync(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, _ := setUp(t, framework.WithNamespace(ns))
				for _, p := range []string{"/", "/none", "/none/below"} {
					succeed(t, w.sync(t, client.Sync(), p))
				}
			}
		})
	}
}
