package builders_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// lockedDown makes /top, where only an administrator may do anything, and below it /top/mine, where everybody
// may do everything.
func lockedDown(t *testing.T, tr tree) {
	t.Helper()
	if err := tr.conn.AddAuth("digest", []byte("admin:secret")); err != nil {
		t.Fatal(err)
	}
	tr.make("/top", "")
	tr.make("/top/mine", "")
	if _, err := tr.conn.SetACL(tr.root+"/top", zk.DigestACL(zk.PermAll, "admin", "secret"), -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that the tree can be removed
		if _, err := tr.conn.SetACL(tr.root+"/top", builders.OpenACL, -1); err != nil {
			t.Error(err)
		}
	})
}

// CURATOR-715, CURATOR-728: neither the right to read nor the right to create is needed above the deepest
// parent that exists.
func TestParentsAreMadeBelowWhatIsForbidden(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			lockedDown(t, tr)
			create := client.Create()
			for name, b := range map[string]builders.Create{
				"/top/mine/a/b/c": create.CreatingParentsIfNeeded(),
				"/top/mine/d/e/f": create.CreatingParentContainersIfNeeded(),
				"/top/mine/g":     create.CreatingParentsIfNeeded(),
				"/top/mine/h/i":   create.CreatingParentsIfNeeded().OrSetData(),
				"/top/mine/k/l":   create.CreatingParentsIfNeeded().Idempotent(),
			} {
				for range 2 { // then with parents that are there
					equal(t, "name", succeed(t, w.create(t, b, name, nil)).Name, name)
					succeed(t, w.delete(t, client.Delete(), name))
				}
			}
			succeed(t, w.exists(t, client.CheckExists().CreatingParentsIfNeeded(), "/top/mine/x/y/z"))
			if !tr.exists("/top/mine/x/y") {
				t.Error("no parent is made")
			}
			view := client.UsingNamespace("top/mine/ns")
			succeed(t, w.create(t, view.Create().CreatingParentsIfNeeded(), "/a/b", nil))
		})
	}
}

// CURATOR-665: that a parent may not be made ends the operation, in the background too.
func TestParentsWithoutPermissionFail(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			lockedDown(t, tr)
			for _, b := range []builders.Create{
				client.Create().CreatingParentsIfNeeded(),
				client.Create().CreatingParentContainersIfNeeded().OrSetData(),
				client.Create().CreatingParentsIfNeeded().WithProtection().WithMode(builders.EphemeralSequential),
			} {
				wantErr(t, w.create(t, b, "/top/other/a/b", nil).Err, zk.ErrNoAuth, "create", "/top/other/a/b")
			}
			b := client.CheckExists().CreatingParentsIfNeeded()
			wantErr(t, w.exists(t, b, "/top/other/a/b").Err, zk.ErrNoAuth, "exists", "/top/other/a/b")
			// The ACL of the parents may forbid what is to be put into them.
			c := client.Create().CreatingParentsIfNeeded().WithACLAppliedToParents(zk.WorldACL(zk.PermRead)...)
			wantErr(t, w.create(t, c, "/top/mine/a/b", nil).Err, zk.ErrNoAuth, "create", "/top/mine/a/b")
		})
	}
}

// Whatever makes parents makes none that the server would delete again, and asks for none: some servers hang up on it.
func TestParentsOfClientWithoutContainersStay(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, framework.WithoutContainerParents())
			succeed(t, w.exists(t, client.CheckExists().CreatingParentContainersIfNeeded(), "/looked/at/n"))
			if err := client.CreateContainers(testenv.Context(t), "/asked/for"); err != nil {
				t.Error(err)
			}
			succeed(t, w.create(t, client.Create().CreatingParentContainersIfNeeded(), "/made/for/n", nil))
			succeed(t, w.create(t, client.UsingNamespace("view").Create(), "/n", nil))
			for _, p := range []string{"/looked/at", "/asked/for", "/made/for", "/view"} {
				if !tr.exists(p) {
					t.Errorf("%s is not made", p)
				}
			}
			for _, entry := range proxy.Faults().Trace() {
				if entry.Op == "createContainer" {
					t.Errorf("a container is asked for: %s", entry.Path)
				}
			}
		})
	}
}
