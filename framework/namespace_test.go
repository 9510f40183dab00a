package framework_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/zkpath"
)

// tree looks at the server past the client under test.
type tree struct {
	tb   testing.TB
	conn *zk.Conn
}

func newTree(tb testing.TB) tree {
	tb.Helper()
	return tree{tb, testenv.Raw(tb)}
}

func (t tree) exists(p string) bool {
	t.tb.Helper()
	ok, _, err := t.conn.Exists(p)
	if err != nil {
		t.tb.Fatal(err)
	}
	return ok
}

func (t tree) acl(p string) []zk.ACL {
	t.tb.Helper()
	acl, _, err := t.conn.GetACL(p)
	if err != nil {
		t.tb.Fatalf("ACL of %s: %v", p, err)
	}
	return acl
}

func (t tree) data(p string) string {
	t.tb.Helper()
	data, _, err := t.conn.Get(p)
	if err != nil {
		t.tb.Fatalf("data of %s: %v", p, err)
	}
	return string(data)
}

// Whatever chroot and namespace: paths come back as they went in, and nodes are where they belong.
func TestPathsInChrootsAndNamespaces(t *testing.T) {
	t.Parallel()
	tests := []struct{ chroot, namespace string }{
		{"", ""}, // only the chroot of the test
		{"", "ns"},
		{"", "n/s"},
		{"/zoo/keeper", ""},
		{"/zoo/keeper", "n/s"},
		{"/zoo", "zoo"}, // C-666: what looks like the namespace is stripped once
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("chroot %q namespace %q", tt.chroot, tt.namespace), func(t *testing.T) {
			t.Parallel()
			root := testenv.Chroot(t)
			server := newTree(t)
			for i, c := range tt.chroot { // a chroot has to be there
				if end := i + 1; end == len(tt.chroot) || i > 0 && c == '/' {
					must(t, makeNode(server.conn, root+strings.TrimSuffix(tt.chroot[:end], "/")))
				}
			}
			client := connectClient(t, testenv.Addr(t)+root+tt.chroot, framework.WithNamespace(tt.namespace))
			if got := client.Namespace(); got != tt.namespace {
				t.Errorf("namespace %q", got)
			}
			checkPaths(t, client, server, path.Join(root+tt.chroot, tt.namespace))
		})
	}
}

func makeNode(conn *zk.Conn, p string) error {
	_, err := conn.Create(p, nil, 0, builders.OpenACL)
	return err
}

// checkPaths works through client, whose paths are below base on the server.
func checkPaths(t *testing.T, client *framework.Client, server tree, base string) {
	t.Helper()
	ctx := testenv.Context(t)
	wantName := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if !server.exists(base + want) {
			t.Errorf("%s: no node %s", what, base+want)
		}
	}
	// The names are those that a prefix test might take for the namespace.
	for _, p := range []string{"/zoo", "/zoo/zoo", "/zoo/zoo/a", "/zoofoo", "/ns", "/nsa", "/n"} {
		name, err := client.Create().ForPath(ctx, p, nil)
		must(t, err)
		wantName("create", name, p)
	}
	results := newEvents()
	must(t, client.Create().CreatingParentsIfNeeded().InBackground(results.callback).
		ForPath(ctx, "/zoo/zoo/b/c", nil))
	ev := receive(t, results)
	wantName("create in background", ev.Name, "/zoo/zoo/b/c")
	if ev.Path != "/zoo/zoo/b/c" {
		t.Errorf("event of %q", ev.Path)
	}

	name, err := client.Create().WithMode(builders.PersistentSequential).ForPath(ctx, "/zoo/", nil)
	must(t, err)
	wantName("sequential", name, "/zoo/0000000001")
	name, err = client.Create().WithProtection().WithMode(builders.EphemeralSequential).
		ForPath(ctx, "/zoo/p-", nil)
	must(t, err)
	if !strings.HasPrefix(zkpath.NormalizePath(name), "/zoo/p-000000000") || !server.exists(base+name) {
		t.Errorf("protected: %q", name)
	}

	children, err := client.GetChildren().ForPath(ctx, "/zoo")
	must(t, err)
	slices.Sort(children)
	if len(children) != 3 || children[0] != "0000000001" || children[2] != "zoo" {
		t.Errorf("children %q", children)
	}
	children, err = client.GetChildren().ForPath(ctx, "/")
	must(t, err)
	slices.Sort(children)
	if diff := cmp.Diff([]string{"n", "ns", "nsa", "zoo", "zoofoo"}, children); diff != "" {
		t.Errorf("children of the root (-want +got):\n%s", diff)
	}

	op := client.TransactionOp()
	outcome, err := client.Transaction().ForOperations(ctx,
		op.Check().ForPath("/zoo"),
		op.Create().ForPath("/zoo/t", nil),
		op.Create().WithMode(builders.PersistentSequential).ForPath("/zoo/s-", nil),
		op.Create().WithMode(builders.Container).ForPath("/zoo/c", nil),
		op.SetData().ForPath("/zoo/t", []byte("x")),
	)
	must(t, err)
	if len(outcome) != 5 {
		t.Fatalf("%d results", len(outcome))
	}
	wantName("transaction", outcome[1].ResultPath, "/zoo/t")
	wantName("transaction: container", outcome[3].ResultPath, "/zoo/c")
	if p := outcome[2].ResultPath; !strings.HasPrefix(p, "/zoo/s-0000") || outcome[2].ForPath != "/zoo/s-" {
		t.Errorf("transaction: %q for %q", p, outcome[2].ForPath)
	}
	if got := server.data(base + "/zoo/t"); got != "x" {
		t.Errorf("data %q", got)
	}

	watcher, seen := newWatcher()
	_, err = client.GetData().UsingWatcher(watcher).ForPath(ctx, "/zoo/t")
	must(t, err)
	_, err = client.GetChildren().UsingWatcher(watcher).ForPath(ctx, "/")
	must(t, err)
	_, err = client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/zoo/later")
	must(t, err)
	must(t, client.Watches().Add().UsingWatcher(watcher).ForPath(ctx, "/zoofoo"))
	wantEvent := func(typ zk.EventType, p string) {
		t.Helper()
		if ev := receive(t, seen); ev.Type != typ || ev.Path != p {
			t.Errorf("watcher gets %v of %q, want %v of %q", ev.Type, ev.Path, typ, p)
		}
	}
	must(t, makeNode(server.conn, base+"/zoo/later"))
	wantEvent(zk.EventNodeCreated, "/zoo/later")
	must(t, makeNode(server.conn, base+"/zoofoo/bar"))
	wantEvent(zk.EventNodeCreated, "/zoofoo/bar")
	must(t, makeNode(server.conn, base+"/other"))
	wantEvent(zk.EventNodeChildrenChanged, "/")
	must(t, client.Delete().ForPath(ctx, "/zoo/t"))
	wantEvent(zk.EventNodeDeleted, "/zoo/t")
	must(t, client.Watches().Remove(watcher).ForPath(ctx, "/zoofoo"))

	_, err = client.GetData().ForPath(ctx, "/none")
	var failed *framework.OpError
	if !errors.As(err, &failed) || failed.Path != "/none" || !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("error %v", err)
	}
	config, err := client.GetConfig().ForEnsemble(ctx) // C-667: is outside of all
	if err != nil || len(config) > 0 {
		t.Errorf("configuration %q of a server that stands alone: %v", config, err)
	}
	stat, err := client.CheckExists().ForPath(ctx, "/")
	if err != nil || stat == nil {
		t.Errorf("root: %v, %v", stat, err)
	}
	must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/zoo"))
	if server.exists(base+"/zoo") || !server.exists(base+"/zoofoo") {
		t.Error("delete with children: not just that")
	}
}

func TestUsingNamespace(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	server := newTree(t)
	root := chrootOf(connect)
	client := connectClient(t, connect, framework.WithNamespace("own"))
	other, whole := client.UsingNamespace("other"), client.UsingNamespace("")
	for i, c := range []*framework.Client{
		client, other, whole, other.UsingNamespace("own"), whole.UsingNamespace("x/y"),
	} {
		want := []string{"own", "other", "", "own", "x/y"}[i]
		if got := c.Namespace(); got != want {
			t.Errorf("namespace %q, want %q", got, want)
		}
		p := fmt.Sprint("/a", i)
		create(t, c, p, want)
		if got := server.data(path.Join(root, want, p)); got != want {
			t.Errorf("namespace %q: data %q", want, got)
		}
		if got := read(t, whole, path.Join("/", want, p)); got != want {
			t.Errorf("namespace %q: data %q through the root", want, got)
		}
	}
	results := newEvents()
	must(t, other.SetData().InBackground(results.callback).ForPath(t.Context(), "/a1", nil))
	if ev := receive(t, results); ev.Path != "/a1" || ev.Err != nil {
		t.Errorf("event of %q: %v", ev.Path, ev.Err)
	}
}

func TestUsingNamespaceInvalidFails(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect)
	ctx := testenv.Context(t)
	for _, ns := range []string{"/a", "a/", "a//b", ".", "..", "a/../b", "a\x00", "/"} {
		view := client.UsingNamespace(ns)
		for name, c := range map[string]*framework.Client{"view": view, "removing": view.WatcherRemoving().Client} {
			for _, op := range operations {
				if op.name == "remove watches" {
					continue
				}
				what := fmt.Sprintf("%s of %q: %s", name, ns, op.name)
				wantErr(t, what, op.foreground(ctx, c, "/a"), zk.ErrInvalidPath)
				err := op.background(ctx, c, "/a", func(context.Context, callbacks.Event) {
					t.Errorf("%s: called back", what)
				})
				wantErr(t, what+" in background", err, zk.ErrInvalidPath)
			}
		}
	}
	if children, err := client.GetChildren().ForPath(ctx, "/"); err != nil || len(children) > 0 {
		t.Errorf("nodes %q: %v", children, err)
	}
}

// namespaceACL gives the nodes of a namespace an ACL of their own and remembers what it was asked for.
type namespaceACL struct {
	mu    sync.Mutex
	paths []string
}

const permOthers = zk.PermRead | zk.PermDelete | zk.PermAdmin

var (
	aclOfNamespaces = []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}}
	aclOfOthers     = []zk.ACL{{Perms: permOthers, Scheme: "world", ID: "anyone"}}
)

func (p *namespaceACL) DefaultACL() []zk.ACL { return aclOfOthers }

func (p *namespaceACL) ACLForPath(path string) []zk.ACL {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths = append(p.paths, path)
	if path == "/n" || path == "/n/s" {
		return aclOfNamespaces
	}
	return nil
}

func TestNamespaceNodesAreContainersWithClientACL(t *testing.T) {
	t.Parallel()
	for _, containers := range []bool{true, false} {
		t.Run(fmt.Sprint("containers ", containers), func(t *testing.T) {
			t.Parallel()
			proxy, connect := newProxy(t)
			server := newTree(t)
			root := chrootOf(connect)
			provider := &namespaceACL{}
			opts := []framework.Option{framework.WithNamespace("n/s"), framework.WithACLProvider(provider)}
			want := "createContainer"
			if !containers {
				opts = append(opts, framework.WithoutContainerParents())
				want = "create2"
			}
			client := connectClient(t, connect, opts...)
			must(t, client.Sync().ForPath(testenv.Context(t), "/")) // whatever the first operation is
			if _, err := client.Create().ForPath(testenv.Context(t), "/a", nil); err != nil {
				t.Fatal(err)
			}
			for p, acl := range map[string][]zk.ACL{
				"/n": aclOfNamespaces, "/n/s": aclOfNamespaces, "/n/s/a": aclOfOthers,
			} {
				if diff := cmp.Diff(acl, server.acl(root+p)); diff != "" {
					t.Errorf("ACL of %s (-want +got):\n%s", p, diff)
				}
			}
			if got := server.data(root + "/n/s"); got != "" {
				t.Errorf("data %q", got)
			}
			var created []string
			for _, e := range proxy.Faults().Trace() {
				if !e.Reply && strings.HasPrefix(e.Op, "create") {
					created = append(created, e.Op+" "+strings.TrimPrefix(e.Path, root))
				}
			}
			if diff := cmp.Diff([]string{want + " /n", want + " /n/s", "create2 /n/s/a"}, created); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			provider.mu.Lock()
			defer provider.mu.Unlock()
			if diff := cmp.Diff([]string{"/n", "/n/s", "/n/s/a"}, provider.paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

// The views of a namespace share it: it is created once, not by each of them.
func TestNamespaceOfViewsIsCreatedOnce(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := connectClient(t, connect)
	for _, view := range []*framework.Client{
		client.UsingNamespace("ns"),
		client.UsingNamespace("ns"),
		client.UsingNamespace("ns").WatcherRemoving().Client,
		client.WatcherRemoving().UsingNamespace("ns"),
	} {
		exists(t, view, "/a")
	}
	if n := requests(proxy, "createContainer"); n != 1 {
		t.Errorf("created %d times", n)
	}
}

// C-388: a server removes containers that are empty.
func TestNamespaceDeletedIsCreatedAgain(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	root := connectClient(t, connect)
	client := connectClient(t, connect, framework.WithNamespace("n/s"))
	ctx := testenv.Context(t)
	creates := map[string]func() (string, error){
		"create": func() (string, error) { return client.Create().ForPath(ctx, "/a", nil) },
		"container parents": func() (string, error) {
			return client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, "/a", nil)
		},
		"protected": func() (string, error) {
			return client.Create().WithProtection().WithMode(builders.EphemeralSequential).ForPath(ctx, "/a-", nil)
		},
		"background": func() (string, error) {
			results := newEvents()
			must(t, client.Create().InBackground(results.callback).ForPath(ctx, "/a", nil))
			ev := receive(t, results)
			return ev.Name, ev.Err
		},
		"view": func() (string, error) {
			return client.UsingNamespace("").UsingNamespace("n/s").Create().ForPath(ctx, "/a", nil)
		},
	}
	for what, create := range creates {
		name, err := create()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if !exists(t, root, "/n/s"+name) {
			t.Errorf("%s: no node %s", what, name)
		}
		must(t, client.Delete().ForPath(ctx, name))
		testenv.Eventually(t, func() bool { return !exists(t, root, "/n") }, "the server removes the namespace")
	}
}

// The first operation of many is as good as the others: all find the namespace.
func TestNamespaceExistsForConcurrentFirstOperations(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for round := range 10 {
		client := connectClient(t, connect)
		view := client.UsingNamespace(fmt.Sprint("ns", round))
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := view.Create().ForPath(testenv.Context(t), fmt.Sprint("/a", i), nil)
				must(t, err)
				results := newEvents()
				must(t, view.SetData().InBackground(results.callback).ForPath(t.Context(), fmt.Sprint("/a", i), nil))
				must(t, receive(t, results).Err)
			})
		}
		wg.Wait()
	}
}

func TestCreateContainers(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect, framework.WithNamespace("ns"))
	must(t, client.CreateContainers(testenv.Context(t), "/a/b"))
	must(t, client.CreateContainers(testenv.Context(t), "/a/b")) // there already
	server := newTree(t)
	if root := chrootOf(connect); !server.exists(root+"/ns/a/b") || server.exists(root+"/ns/a/b/foo") {
		t.Error("not just /a/b")
	}
	createEphemeral(t, client, "/a/b/c")
	must(t, client.Delete().ForPath(testenv.Context(t), "/a/b/c"))
	testenv.Eventually(t, func() bool { return !exists(t, client, "/a") }, "the server removes the containers")
}
