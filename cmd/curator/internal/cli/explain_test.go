package cli

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestRefusalNamesTheLogin has nodes that one user may read, and asks for them as another one and as none.
func TestRefusalNamesTheLogin(t *testing.T) {
	environ, connect := connected(t)
	owner := testclient.Connect(t, connect)
	testclient.Must(t, owner.AddAuth("digest", []byte("alice:wonder")))
	for _, path := range []string{"/mine", "/mine/a"} {
		_, err := owner.Create().WithACL(zk.AuthACL(zk.PermAll)...).ForPath(t.Context(), path, []byte("x"))
		testclient.Must(t, err)
	}
	defer func() { // what deletes the test's tree may not do so
		_, err := owner.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(testenv.Context(t), "/mine")
		testclient.Must(t, err)
	}()
	for _, args := range []string{
		"get /mine", "ls /mine", "tree /mine", "tree / --data", "find / --data x", "holders /mine", "holders /",
		"services /", "create /mine/b x", "set /mine x", "put /mine x", "rm -r /mine", "rm /mine/a",
		"chmod world:anyone:r /mine", "chmod -R world:anyone:r /", "stat --acl /mine", "queue ls /mine",
		"lock /mine/l -- true", "semaphore /mine/s -- true", "elect --wait 1m /mine/e -- true",
	} {
		none := invoke(t.Context(), strings.Fields(args), environ...)
		if none.code != CodeRefused || !strings.Contains(none.stderr, "not logged in, and no permission for ip:") ||
			strings.Count(none.stderr, "\n") != 1 {
			t.Errorf("%s without a login: %+v", args, none)
		}
		bob := invoke(t.Context(), append([]string{"--auth", "digest:bob:x"}, strings.Fields(args)...), environ...)
		if bob.code != CodeRefused || !strings.Contains(bob.stderr, "no permission for digest:bob\n") ||
			strings.Contains(bob.stderr, "authenticated") || strings.Contains(bob.stderr, "not logged in") {
			t.Errorf("%s as bob: %+v", args, bob)
		}
	}
	got := invoke(t.Context(), strings.Fields("tree / --data -o json"), environ...)
	if !strings.Contains(got.stdout, `no permission"}`) || strings.Contains(got.stdout, "authenticated") {
		t.Errorf("a node as JSON: %s", got.stdout)
	}
}

func TestRefusalOfAServerThatDoesNotSayWhoIsLoggedIn(t *testing.T) {
	server := curatortest.NewServerT(t)
	for _, rule := range []curatortest.Rule{
		{Ops: []string{"getData"}, Path: "/x", Action: curatortest.ReplyError, Err: zk.ErrNoAuth},
		{Ops: []string{"whoAmI"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented},
	} {
		testclient.Must(t, server.Faults().Add(rule).Err())
	}
	got := invoke(t.Context(), []string{"get", "/x"}, "CURATOR_CONNECT="+server.ConnectString())
	if got.code != CodeRefused || got.stderr != "curator: getData /x: no permission\n" {
		t.Errorf("get: %+v", got)
	}
}

// TestMissingChrootIsNamed has operations that would fail for another reason, wait for ever, or succeed.
func TestMissingChrootIsNamed(t *testing.T) {
	environ, _ := connected(t)
	environ[0] += "/none/chroot"
	for _, args := range []string{
		"ls /", "ls /a", "get /a", "stat /", "tree", "find /", "watch /", "watch /a", "holders", "holders / --follow",
		"services", "queue ls /q", "queue requeue /dead /q --all", "create /a x", "create -p /a/b x", "put /a x", "set /a x",
		"rm /a", "rm -f /a", "rm -rf /a", "chmod world:anyone:r /a", "lock /l -- true", "lock --try /l -- true",
		"semaphore /s -- true", "elect /e -- true",
	} {
		got := invoke(t.Context(), strings.Fields(args), environ...)
		if got.code != CodeNoNode || got.stdout != "" || !strings.Contains(got.stderr, "/none/chroot does not exist") ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestElectHTTPNamesAMissingChroot(t *testing.T) {
	environ, _ := connected(t)
	environ[0] += "/none/chroot"
	p := launch(t, environ, "", "elect", "--http", "127.0.0.1:0", "/leader")
	testenv.Eventually(t, func() bool { return strings.Contains(p.errors(), "/none/chroot does not exist") }, "it says so")
}

// TestFollowersNameWhatTheyCannotRead has nodes that this client may not read: newer servers send no events of them.
func TestFollowersNameWhatTheyCannotRead(t *testing.T) {
	environ, connect := connected(t)
	owner := testclient.Connect(t, connect)
	testclient.Must(t, owner.AddAuth("digest", []byte("alice:wonder")))
	_, err := owner.Create().ForPath(t.Context(), "/t", []byte("x"))
	testclient.Must(t, err)
	for _, path := range []string{"/t/mine", "/t/other"} {
		_, err := owner.Create().WithACL(zk.AuthACL(zk.PermAll)...).ForPath(t.Context(), path, []byte("x"))
		testclient.Must(t, err)
	}
	for args, want := range map[string]string{
		"watch /t":             "changes may be missing: 2 nodes could not be read; the first: getData /t/mine: not",
		"watch /t/mine":        "changes may be missing: getData /t/mine: not logged in",
		"watch /t/mine --flat": "changes may be missing: getData /t/mine: not logged in",
		"holders /t --follow":  "some may be missing: 2 nodes could not be read; the first: getData /t/mine: not logged in",
		"watch /t --auth digest:bob:x": "changes may be missing: 2 nodes could not be read; the first: getData /t/mine: " +
			"no permission for digest:bob\n",
	} {
		p := launch(t, environ, "", strings.Fields(args)...)
		testenv.Eventually(t, func() bool { return strings.Contains(p.errors(), want) }, args+" says what it cannot read")
	}
	p := launch(t, environ, "", "watch", "/t", "--auth", "digest:alice:wonder")
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "watching") }, "it watches")
	_, err = owner.SetData().ForPath(t.Context(), "/t/mine", []byte("y"))
	testclient.Must(t, err)
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "/t/mine") }, "the owner sees changes")
	if text := p.errors(); text != "" {
		t.Errorf("to the owner: %q", text)
	}
}

// TestWatchNamesDataThatItCannotRead has a server that sends an event of a node whose data is refused.
func TestWatchNamesDataThatItCannotRead(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "watch", "/t", "--data")
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "watching") }, "it watches")
	testclient.Must(t, server.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Path: "/t/x", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	}).Err())
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/t/x", []byte("x"))
	testclient.Must(t, err)
	testenv.Eventually(t, func() bool {
		return strings.Contains(p.errors(), "curator: the data is not readable: getData /t/x: ")
	}, "it says so")
}
