package framework_test

import (
	"crypto/sha1"
	"encoding/base64"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// digestACL returns the identity of a user with a password.
func digestACL(userAndPassword, user string) string {
	sum := sha1.Sum([]byte(userAndPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// In Java: TestFramework.testCreateACLWithReset and its kin.
func TestAuthIsSentOnEachConnectionAndSession(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	mine := []zk.ACL{{Perms: zk.PermAll, Scheme: "auth"}} // of the creator
	client, recorded := connectRecorded(t, connect,
		framework.WithAuth("digest", []byte("me:secret")),
		framework.WithAuth("digest", []byte("us:shared")), // adds
		framework.WithACLProvider(builders.FixedACL(mine)))
	ctx := testenv.Context(t)
	_, err := client.Create().ForPath(ctx, "/a", []byte("x"))
	must(t, err)
	want := []zk.ACL{
		{Perms: zk.PermAll, Scheme: "digest", ID: digestACL("me:secret", "me")},
		{Perms: zk.PermAll, Scheme: "digest", ID: digestACL("us:shared", "us")},
	}
	wantACL := func(p string) {
		t.Helper()
		acl, err := client.GetACL().ForPath(ctx, p)
		must(t, err)
		if diff := cmp.Diff(want, acl); diff != "" {
			t.Errorf("ACL of %s (-want +got):\n%s", p, diff)
		}
	}
	wantACL("/a")
	if _, _, err := newTree(t).conn.Get(chrootOf(connect) + "/a"); err != zk.ErrNoAuth {
		t.Errorf("others: %v, want %v", err, zk.ErrNoAuth)
	}
	t.Run("after a dropped connection", func(t *testing.T) {
		proxy.Faults().CutAll()
		recorded.want(t, suspended, reconnected)
		if got := read(t, client, "/a"); got != "x" {
			t.Errorf("data %q", got)
		}
	})
	t.Run("in the next session", func(t *testing.T) {
		must(t, client.Reset())
		recorded.want(t, lost, reconnected)
		if got := read(t, client, "/a"); got != "x" {
			t.Errorf("data %q", got)
		}
		_, err := client.Create().ForPath(ctx, "/b", nil)
		must(t, err)
		wantACL("/b")
	})
	t.Run("ahead of what waits for the connection", func(t *testing.T) {
		restore := outage(proxy)
		recorded.want(t, suspended)
		results := newEvents()
		for range 10 {
			must(t, client.GetData().InBackground(results.callback).ForPath(ctx, "/a"))
		}
		restore()
		for range 10 {
			if ev := receive(t, results); ev.Err != nil {
				t.Error(ev.Err)
			}
		}
	})
	must(t, client.Delete().ForPath(ctx, "/b"))
	must(t, client.Delete().ForPath(ctx, "/a"))
}

// Credentials that the server refuses end in an error, not in a hang.
func TestAuthRefusedEndsInAuthFailed(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t), framework.WithAuth("nonsense", []byte("a:b")),
		framework.WithConnectionTimeout(time.Hour), framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)))
	unhandled := make(chan error, 10)
	client.AddUnhandledErrorListener(onUnhandled(unhandled))
	recorded := record(client)
	start(t, client)
	recorded.await(t, lost) // perhaps suspended before: see want
	wantErr(t, "unhandled", receive(t, unhandled), zk.ErrAuthFailed)
	ctx := testenv.Context(t)
	for _, op := range operations {
		if offline(op) {
			continue
		}
		took(t, soon, op.name, func() {
			wantErr(t, op.name, op.foreground(ctx, client, "/a"), zk.ErrAuthFailed)
			results := newEvents()
			must(t, op.background(ctx, client, "/a", results.callback))
			wantErr(t, op.name+" in background", receive(t, results).Err, zk.ErrAuthFailed)
		})
	}
	took(t, soon, "BlockUntilConnected", func() {
		wantErr(t, "BlockUntilConnected", client.BlockUntilConnected(ctx), zk.ErrAuthFailed)
	})
	if client.IsConnected() {
		t.Error("connected")
	}
	recorded.end(t, client)
}

// What is on its way when the credentials are refused fails with that too, not with a lost connection.
func TestAuthRefusedOperationsUnderWayFail(t *testing.T) {
	t.Parallel()
	client := startClient(t, testenv.ConnectString(t), framework.WithAuth("nonsense", nil))
	results := newEvents()
	for range 100 { // more than are in flight at once
		must(t, client.GetData().InBackground(results.callback).ForPath(t.Context(), "/"))
	}
	_, err := client.GetData().ForPath(testenv.Context(t), "/")
	wantErr(t, "get data", err, zk.ErrAuthFailed)
	for range 100 {
		wantErr(t, "get data in background", receive(t, results).Err, zk.ErrAuthFailed)
	}
}

func TestACLProvider(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	root := chrootOf(connect)
	server := newTree(t)
	ctx := testenv.Context(t)
	provider := &namespaceACL{} // of /n and /n/s, and of all others
	client := connectClient(t, connect, framework.WithACLProvider(provider))
	given := []zk.ACL{{Perms: zk.PermAll &^ zk.PermWrite, Scheme: "world", ID: "anyone"}}

	_, err := client.Create().ForPath(ctx, "/n", nil)
	must(t, err)
	_, err = client.Create().WithACL(given...).CreatingParentsIfNeeded().ForPath(ctx, "/n/s/a", nil)
	must(t, err)
	_, err = client.Create().WithACLAppliedToParents(given...).CreatingParentsIfNeeded().
		ForPath(ctx, "/x/y", nil)
	must(t, err)
	op := client.TransactionOp()
	_, err = client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/t", nil), op.Create().WithACL(given...).ForPath("/u", nil))
	must(t, err)
	for p, want := range map[string][]zk.ACL{
		"/n": aclOfNamespaces, "/n/s": aclOfNamespaces, "/n/s/a": given, "/x": given, "/x/y": given,
		"/t": aclOfOthers, "/u": given,
	} {
		if diff := cmp.Diff(want, server.acl(root+p)); diff != "" {
			t.Errorf("ACL of %s (-want +got):\n%s", p, diff)
		}
	}
	// Without children that their parents' ACL keeps, so that all can be removed.
	for _, p := range []string{"/n/s/a", "/x/y"} {
		must(t, client.Delete().ForPath(ctx, p))
	}

	silent := connectClient(t, connect, framework.WithACLProvider(builders.FixedACL(nil)))
	_, err = silent.Create().ForPath(ctx, "/open", nil)
	must(t, err)
	if diff := cmp.Diff(builders.OpenACL, server.acl(root+"/open")); diff != "" {
		t.Errorf("ACL of a provider of nothing (-want +got):\n%s", diff)
	}
}
