package kerberos

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
)

// TestMutexWithJava has a Java client and one in Go hold one mutex, with nodes that only alice may use.
func TestMutexWithJava(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	ctx := testenv.Context(t)
	program := interop.Curator
	program.Flags = append(slices.Clone(program.Flags),
		"-Djava.security.auth.login.config="+k.JAAS("Client", keytab, "alice"),
		"-Djava.security.krb5.conf="+k.ConfigFile())
	java, err := interop.Start(ctx, program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { testclient.Must(t, java.Close()) }()
	call := func(cmd string, args interop.Args, out any) {
		t.Helper()
		testclient.Must(t, java.Call(ctx, cmd, args, out))
	}
	call("start", interop.Args{"connect": server.Addr(), "sessionTimeoutMs": 20_000, "creatorOnly": true}, nil)
	call("mutexNew", interop.Args{"name": "m", "path": "/lock"}, nil)

	m := must(FromKeytab(keytab, alice, WithConfigFile(k.ConfigFile())))
	client := testclient.Connect(t, server.Addr(), framework.WithSASL(m),
		framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
	mutex := locks.NewInterProcessMutex(client, "/lock")
	for range 3 {
		var acquired bool
		call("mutexAcquire", interop.Args{"name": "m", "timeoutMs": 20_000}, &acquired)
		if !acquired {
			t.Fatal("Java does not get the mutex")
		}
		if _, err := mutex.TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("Go gets the mutex beside Java: %v", err)
		}
		call("mutexRelease", interop.Args{"name": "m"}, nil)
		hold, err := mutex.Acquire(ctx)
		testclient.Must(t, err)
		call("mutexAcquire", interop.Args{"name": "m", "timeoutMs": 100}, &acquired)
		if acquired {
			t.Error("Java gets the mutex beside Go")
		}
		acl, err := client.GetACL().ForPath(ctx, hold.Path())
		if want := []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: alice}}; !slices.Equal(acl, want) {
			t.Errorf("the ACL of the node is %v, want %v, %v", acl, want, err)
		}
		testclient.Must(t, hold.Release(ctx))
	}

	k.Add("bob", "secret")
	bob := testclient.Connect(t, server.Addr(),
		framework.WithSASL(must(FromPassword("bob", "secret", WithConfigFile(k.ConfigFile())))))
	if _, err := locks.NewInterProcessMutex(bob, "/lock").TryAcquire(ctx, 0); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("bob gets the mutex, or waits for it: %v", err)
	}
}
