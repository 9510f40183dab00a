package builders_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestEnsurePathCreatesNodesThatStay(t *testing.T) {
	t.Parallel()
	acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermAdmin, Scheme: "world", ID: "anyone"}}
	client, tr := setUp(t, framework.WithNamespace("ns"), framework.WithCompression(),
		framework.WithACLProvider(aclFunc(func(string) []zk.ACL { return acl })))
	ctx := testenv.Context(t)
	for range 2 {
		if err := client.EnsurePath(ctx, "/a/b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EnsurePath(ctx, "/"); err != nil {
		t.Error(err)
	}
	if err := client.CreateContainers(ctx, "/k/b"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ns/a", "/ns/a/b"} {
		data, _ := tr.read(path)
		equal(t, "data of "+path, data, "")
		equal(t, "ACL of "+path, tr.acl(path), acl)
	}
	for _, path := range []string{"/ns/a/b/c", "/ns/k/b/c"} {
		tr.make(path, "")
		tr.remove(path)
	}
	tr.awaitGone("/ns/k")
	if !tr.exists("/ns/a/b") {
		t.Error("the persistent node is gone")
	}
	if err := client.EnsurePath(ctx, "no slash"); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("error is %v", err)
	}
}

func TestEnsurePathOfExistingNodeLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	tr.make("/a", "data")
	tr.make("/a/b", "more")
	permit := func(perms int32) {
		t.Helper()
		if _, err := tr.conn.SetACL(tr.root+"/a", zk.WorldACL(perms), -1); err != nil {
			t.Fatal(err)
		}
	}
	permit(zk.PermAdmin | zk.PermDelete) // neither to read nor to create
	defer permit(zk.PermAll)
	for _, path := range []string{"/a", "/a/b"} {
		if err := client.EnsurePath(testenv.Context(t), path); err != nil {
			t.Error(err)
		}
	}
	if err := client.EnsurePath(testenv.Context(t), "/a/c"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("error is %v", err)
	}
	data, stat := tr.read("/a/b")
	if data != "more" || stat.Version != 0 {
		t.Errorf("data %q, %+v", data, stat)
	}
}

func TestEnsurePathWithLostConnectionsCreatesAll(t *testing.T) {
	t.Parallel()
	cutEverywhere(t, 1, nil, func(t *trial) {
		if err := t.client.EnsurePath(testenv.Context(t), t.dir+"/a/b"); err != nil {
			t.Fatal(err)
		}
		if !t.tr.exists(t.full + "/a/b") {
			t.Error("there is no node")
		}
	})
}

// A fenced client may send the create again too, because it finds its own node.
func TestEnsurePathFencedWithLostAnswerCreatesAll(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/fence", "")
	fenced := client.Fenced(t.Context(), errors.New("lost"), "/fence")
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Skip: 1, Count: 1, Action: curatortest.CutAfter})
	if err := fenced.EnsurePath(testenv.Context(t), "/a/b"); err != nil || !tr.exists("/a/b") {
		t.Errorf("error is %v", err)
	}
}

// Another client deletes an ancestor between two of its creates, or creates the node first.
func TestEnsurePathBesideOtherClientsCreatesAll(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{zk.ErrNoNode, zk.ErrNodeExists} {
		for k := range 3 {
			t.Run(fmt.Sprintf("%v %d", refusal, k), func(t *testing.T) {
				t.Parallel()
				client, tr, proxy := setUpProxied(t)
				if err := client.UsingNamespace("").Sync().ForPath(testenv.Context(t), "/"); err != nil {
					t.Fatal(err)
				}
				if refusal == zk.ErrNodeExists {
					tr.make("/a", "")
				}
				rule := curatortest.Rule{Ops: []string{"create2"}, Skip: k, Count: 1, Action: curatortest.ReplyError, Err: refusal}
				rule.MayMiss = true
				proxy.Faults().Add(rule)
				err := client.EnsurePath(testenv.Context(t), "/a/b")
				if err != nil {
					t.Fatal(err)
				}
				if refusal == zk.ErrNoNode && !tr.exists("/a/b") {
					t.Error("there is no node")
				}
			})
		}
	}
}
