package framework_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// Credentials of a live client count for the next operation, on every later connection, and in every later session.
func TestAddAuth(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	ctx := testenv.Context(t)
	client := connectClient(t, connect)
	recorded := record(client)
	owner := connectClient(t, connect, framework.WithAuth("digest", []byte("me:secret")),
		framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
	_, err := owner.Create().ForPath(ctx, "/mine", nil)
	must(t, err)
	if _, err := client.GetData().ForPath(ctx, "/mine"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("without credentials: %v", err)
	}
	auth := []byte("me:secret")
	must(t, client.AddAuth("digest", auth))
	clear(auth)
	reads := func(when string) {
		t.Helper()
		if _, err := client.GetData().ForPath(ctx, "/mine"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	reads("at once")
	must(t, client.AddAuth("digest", []byte("me:secret")))
	proxy.Faults().CutAll()
	recorded.await(t, reconnected)
	reads("on the next connection")
	must(t, client.Reset())
	recorded.await(t, lost, reconnected)
	reads("in the next session")

	ids, err := client.WhoAmI(ctx)
	must(t, err)
	if n := len(ids); n != 2 || !slices.Contains(ids, builders.Identity{Scheme: "digest", ID: "me"}) {
		t.Errorf("the client is %v", ids)
	}
	wantErr(t, "AddAuth", client.AddAuth("sasl", nil), framework.ErrBadArguments)
	wantErr(t, "AddAuth", client.AddAuth("", nil), framework.ErrBadArguments)
}

// Credentials that are added while there is no connection are sent on the first one.
func TestAddAuthWithoutAConnection(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	wantErr(t, "AddAuth", client.AddAuth("digest", []byte("me:secret")), framework.ErrNotStarted)
	start(t, client)
	for _, user := range []string{"me", "you", "he", "she"} { // perhaps while it connects
		must(t, client.AddAuth("digest", []byte(user+":secret")))
	}
	ids, err := client.WhoAmI(testenv.Context(t))
	must(t, err)
	if len(ids) != 5 {
		t.Errorf("the client is %v", ids)
	}
	closeClient(t, client)
	wantErr(t, "AddAuth", client.AddAuth("digest", []byte("me:secret")), framework.ErrClosed)
}

func TestAddAuthRefused(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	recorded := record(client)
	must(t, client.AddAuth("nonsense", []byte("a:b")))
	recorded.await(t, lost)
	wantErr(t, "BlockUntilConnected", client.BlockUntilConnected(testenv.Context(t)), zk.ErrAuthFailed)
	_, err := client.GetData().ForPath(testenv.Context(t), "/")
	wantErr(t, "GetData", err, zk.ErrAuthFailed)
}
