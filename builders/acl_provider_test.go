package builders_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// aclFunc is an ACL provider whose answer for a path is a function.
type aclFunc func(path string) []zk.ACL

func (aclFunc) DefaultACL() []zk.ACL              { return nil }
func (p aclFunc) ACLForPath(path string) []zk.ACL { return p(path) }

// makers are the operations that create nodes, each below a directory that is given.
var makers = map[string]struct {
	op  string
	run func(t *testing.T, w way, client *framework.Client, dir string) error
}{
	"create": {"create", func(t *testing.T, w way, client *framework.Client, dir string) error {
		return w.create(t, client.Create(), dir, nil).Err
	}},
	"create with parents": {"create", func(t *testing.T, w way, client *framework.Client, dir string) error {
		return w.create(t, client.Create().CreatingParentsIfNeeded(), dir+"/a/b", nil).Err
	}},
	"create with parents and an ACL": {"create", func(t *testing.T, w way, client *framework.Client, dir string) error {
		b := client.Create().CreatingParentsIfNeeded().WithACL(builders.OpenACL...)
		return w.create(t, b, dir+"/a/b", nil).Err
	}},
	"exists with parents": {"exists", func(t *testing.T, w way, client *framework.Client, dir string) error {
		return w.exists(t, client.CheckExists().CreatingParentsIfNeeded(), dir+"/a/b").Err
	}},
	"transaction": {"create", func(t *testing.T, w way, client *framework.Client, dir string) error {
		op := client.TransactionOp().Create().ForPath(dir, nil)
		return w.transaction(t, client.Transaction(), op).Err
	}},
	"namespace": {"exists", func(t *testing.T, w way, client *framework.Client, dir string) error {
		view := client.UsingNamespace(strings.TrimPrefix(dir, "/"))
		return w.exists(t, view.CheckExists(), "/n").Err
	}},
}

// A provider that blocks does so on the goroutine of the caller: other operations, and the connection, go on.
func TestACLProviderThatBlocksCostsOnlyItsOperation(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		for _, w := range ways {
			t.Run(name+", "+string(w), func(t *testing.T) {
				blocked, release := make(chan struct{}, 10), make(chan struct{})
				client, tr := setUp(t, framework.WithACLProvider(aclFunc(func(path string) []zk.ACL {
					if strings.HasPrefix(path, "/slow") && !strings.HasSuffix(path, "/b") { // not that of the node itself
						blocked <- struct{}{}
						<-release
					}
					return nil
				})))
				var done sync.WaitGroup
				defer done.Wait()
				let := sync.OnceFunc(func() { close(release) })
				defer let()
				done.Go(func() {
					if err := m.run(t, w, client, "/slow"); err != nil {
						t.Error(err)
					}
				})
				receive(t, blocked)
				ctx, cancel := context.WithTimeout(testenv.Context(t), 5*time.Second)
				defer cancel()
				if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/quick/n", nil); err != nil {
					t.Errorf("an operation beside it: %v", err)
				}
				let()
				done.Wait()
				equal(t, "quick", tr.exists("/quick/n"), true)
			})
		}
	}
}

func TestACLProviderThatPanicsIsTheErrorOfItsOperation(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		for _, w := range ways {
			t.Run(name+", "+string(w), func(t *testing.T) {
				client, tr := setUp(t, framework.WithACLProvider(aclFunc(func(path string) []zk.ACL {
					if strings.HasPrefix(path, "/bad") {
						panic("no ACL today")
					}
					return nil
				})))
				err := m.run(t, w, client, "/bad")
				for _, part := range []string{
					"panic in the ACL provider builders_test.aclFunc: no ACL today", "acl_provider_test.go",
				} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("error is %v, want it to say %q", err, part)
					}
				}
				var opErr *builders.OpError
				if !errors.As(err, &opErr) || opErr.Op != m.op {
					t.Errorf("error is %v, want an OpError of %s", err, m.op)
				}
				equal(t, "nodes", tr.children("/"), []string{})
				succeed(t, w.create(t, client.Create(), "/good", nil))
			})
		}
	}
}

// A retry, which begins on a goroutine of the client, does not call the provider again.
func TestACLProviderIsCalledOnceForANode(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			var mu sync.Mutex
			calls := make(map[string]int)
			client, tr, proxy := setUpProxied(t, framework.WithNamespace("ns"),
				framework.WithACLProvider(aclFunc(func(path string) []zk.ACL {
					mu.Lock()
					defer mu.Unlock()
					calls[path]++
					return zk.WorldACL(zk.PermAll &^ zk.PermAdmin)
				})))
			cut := proxy.Faults().Add(curatortest.Rule{Action: curatortest.CutBefore, Skip: 1, Count: 2})
			succeed(t, w.create(t, client.Create().CreatingParentsIfNeeded(), "/a/b", nil))
			if cut.Hits() != 2 {
				t.Errorf("%d cuts", cut.Hits())
			}
			want := zk.WorldACL(zk.PermAll &^ zk.PermAdmin)
			for _, path := range []string{"/ns", "/ns/a", "/ns/a/b"} {
				equal(t, "ACL of "+path, tr.acl(path), want)
			}
			mu.Lock()
			defer mu.Unlock()
			equal(t, "calls", calls, map[string]int{"/ns": 1, "/ns/a": 1, "/ns/a/b": 1})
		})
	}
}
