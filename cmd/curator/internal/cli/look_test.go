package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// grown returns what connected does, and a client, with a small tree at /t.
func grown(t *testing.T) (environ []string, client *framework.Client) {
	t.Helper()
	environ, connect := connected(t)
	return environ, grow(t, connect)
}

// grow makes the tree.
func grow(t *testing.T, connect string) *framework.Client {
	t.Helper()
	client := testclient.Connect(t, connect)
	for _, n := range []struct {
		path, data string
		mode       builders.CreateMode
	}{
		{"/t/a-b", "dash", builders.Persistent},
		{"/t/a/lock", "\x00\xff", builders.Ephemeral},
		{"/t/a/note", "two\nlines", builders.Persistent},
		{"/t/c", "", builders.Persistent},
	} {
		_, err := client.Create().CreatingParentsIfNeeded().WithMode(n.mode).ForPath(t.Context(), n.path, []byte(n.data))
		testclient.Must(t, err)
	}
	_, err := client.SetData().ForPath(t.Context(), "/t", []byte{})
	testclient.Must(t, err)
	_, err = client.SetData().ForPath(t.Context(), "/t/a", []byte{})
	testclient.Must(t, err)
	return client
}

// expect runs the program and compares all that it prints.
func expect(t *testing.T, environ []string, args, want string) {
	t.Helper()
	got := invoke(t.Context(), strings.Fields(args), environ...)
	if diff := cmp.Diff(result{stdout: want}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", args, diff)
	}
}

// invokeWith is invoke with a standard input.
func invokeWith(ctx context.Context, stdin string, args []string, environ ...string) result {
	var stdout, stderr bytes.Buffer
	env := environment(environ)
	env.Args, env.Stdin, env.Stdout, env.Stderr = args, strings.NewReader(stdin), &stdout, &stderr
	return result{Main(ctx, env), stdout.String(), stderr.String()}
}

// environment returns an environment of KEY=value.
func environment(environ []string) Env {
	return Env{Getenv: func(key string) string {
		for _, e := range environ {
			if k, v, _ := strings.Cut(e, "="); k == key {
				return v
			}
		}
		return ""
	}}
}

func TestTreeDrawsNodes(t *testing.T) {
	environ, _ := grown(t)
	expect(t, environ, "tree /t", `/t
├── a
│   ├── lock (ephemeral)
│   └── note
├── a-b
└── c
`)
	expect(t, environ, "tree /t --depth 1 --data", `/t
├── a
├── a-b = dash
└── c
`)
	expect(t, environ, "tree /t/a --data", `/t/a
├── lock (ephemeral) = 0x00ff
└── note = "two\nlines"
`)
}

func TestTreePrintsANodeALine(t *testing.T) {
	environ, _ := grown(t)
	got := invoke(t.Context(), []string{"tree", "/t", "--data", "-o", "json"}, environ...)
	var paths []string
	for line := range strings.Lines(got.stdout) {
		var n struct {
			Path       string
			DataBase64 string
			Stat       struct{ EphemeralOwner string }
		}
		testclient.Must(t, json.Unmarshal([]byte(line), &n))
		paths = append(paths, n.Path)
		if is := n.Path == "/t/a/lock"; (n.Stat.EphemeralOwner != "") != is || (n.DataBase64 == "AP8=") != is {
			t.Errorf("node: %s", line)
		}
	}
	want := []string{"/t", "/t/a", "/t/a/lock", "/t/a/note", "/t/a-b", "/t/c"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestLsLongPrintsStats(t *testing.T) {
	environ, _ := grown(t)
	got := invoke(t.Context(), []string{"ls", "-l", "/t/a"}, environ...)
	lines := strings.Split(got.stdout, "\n")
	fields := strings.Fields(lines[1])
	if len(lines) != 4 || len(fields) != 7 || fields[0] != "ephemeral" || fields[3] != "2" || fields[6] != "lock" {
		t.Errorf("ls -l: %+v", got)
	}
	if got := invoke(t.Context(), []string{"ls", "-l", "/none"}, environ...); got.code != CodeNoNode {
		t.Errorf("ls -l of no node: %+v", got)
	}
}

func TestStatKnowsKindsAndPermissions(t *testing.T) {
	environ, _ := grown(t)
	for path, want := range map[string]string{
		"/t/a/lock": `"kind":"ephemeral"`, "/t": `"kind":"persistent"`,
	} {
		got := invoke(t.Context(), []string{"stat", path, "-o", "json", "--acl"}, environ...)
		if !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, `"acl":"world:anyone:cdrwa"`) {
			t.Errorf("stat %s: %+v, want %s", path, got, want)
		}
	}
	if got := invoke(t.Context(), []string{"stat", "/t", "/none"}, environ...); got.code != CodeNoNode {
		t.Errorf("stat of no node: %+v", got)
	}
}

func TestFindMeetsConditions(t *testing.T) {
	environ, client := grown(t)
	owner := output.Session(client.SessionID())
	for args, want := range map[string]string{
		"find /t --name a*":                                 "/t/a\n/t/a-b\n",
		"find /t --kind ephemeral":                          "/t/a/lock\n",
		"find /t --owner " + owner:                          "/t/a/lock\n",
		"find /t --owner 0x1":                               "",
		"find /t --owner 0x0":                               "",
		"find /t --owner 0x00" + strings.ToUpper(owner[2:]): "/t/a/lock\n",
		"find /t --data ^da.h$":                             "/t/a-b\n",
		"find /t --empty":                                   "/t/c\n",
		"find /t --empty -0":                                "/t/c\x00",
		"find /t --depth 1 --name note":                     "",
		"find /t --older 10h":                               "",
		"find /t --newer 10h --name c":                      "/t/c\n",
	} {
		expect(t, environ, args, want)
	}
	for _, args := range []string{"--name [", "--data [", "--kind fleeting", "--owner 1", "--owner 0xz"} {
		got := invoke(t.Context(), strings.Fields("find /t "+args), environ...)
		if got.code != CodeUsage {
			t.Errorf("find %s: %+v", args, got)
		}
	}
}

func TestSetTakesArgumentOrInput(t *testing.T) {
	environ, client := grown(t)
	data := func() string {
		data, err := client.GetData().ForPath(t.Context(), "/t/c")
		testclient.Must(t, err)
		return string(data)
	}
	expect(t, environ, "set /t/c word", "")
	if got := data(); got != "word" {
		t.Errorf("data %q", got)
	}
	for _, input := range []string{"\xff\x00\n", ""} {
		if got := invokeWith(t.Context(), input, []string{"set", "/t/c"}, environ...); got.code != CodeOK || data() != input {
			t.Errorf("set from input %q: %+v, data %q", input, got, data())
		}
	}
	got := invoke(t.Context(), []string{"set", "/t/c", "late", "--version", "1"}, environ...)
	if got.code != CodeFailed || data() != "" {
		t.Errorf("set in an old version: %+v, data %q", got, data())
	}
	got = invoke(t.Context(), []string{"set", "/t/c", "new", "--version", "3", "-o", "json"}, environ...)
	if got.code != CodeOK || !strings.Contains(got.stdout, `"version":4`) {
		t.Errorf("set in its version: %+v", got)
	}
}

func TestRmDeletes(t *testing.T) {
	environ, client := grown(t)
	exists := func(path string) bool {
		s, err := client.CheckExists().ForPath(t.Context(), path)
		testclient.Must(t, err)
		return s != nil
	}
	for _, test := range []struct {
		args, stdout string
		code         int
		left         string // a node that must be there
	}{
		{args: "rm /t", code: CodeFailed, left: "/t/a/note"},
		{args: "rm -r /t --dry-run", stdout: "/t\n/t/a\n/t/a/lock\n/t/a/note\n/t/a-b\n/t/c\n", left: "/t/a/note"},
		{args: "rm -r /t --version 7", code: CodeFailed, left: "/t/a/note"},
		{args: "rm -r /", code: CodeUsage, left: "/t/a/note"},
		{args: "rm -r /zookeeper/quota", code: CodeUsage},
		{args: "rm /none", code: CodeNoNode},
		{args: "rm -r /none", code: CodeNoNode},
		{args: "rm -f /none"},
		{args: "rm -rf /none"},
		{args: "rm /t/c", left: "/t/a-b"},
		{args: "rm -r /t", left: "/"},
	} {
		got := invoke(t.Context(), strings.Fields(test.args), environ...)
		if got.code != test.code || got.stdout != test.stdout || test.left != "" && !exists(test.left) {
			t.Errorf("%s: %+v, want code %d and %q", test.args, got, test.code, test.stdout)
		}
	}
	if exists("/t") {
		t.Error("/t is left")
	}
}

// TestRmDeletesNothingIfItCannotList has a node below whose children may not be read.
func TestRmDeletesNothingIfItCannotList(t *testing.T) {
	connect := curatortest.NewServerT(t).ConnectString() // of its own: not even the test may read the nodes at its end
	environ, client := []string{"CURATOR_CONNECT=" + connect}, grow(t, connect)
	_, err := client.SetACL().WithACL(zk.WorldACL(zk.PermDelete|zk.PermAdmin)...).ForPath(t.Context(), "/t/a")
	testclient.Must(t, err)
	for args, stdout := range map[string]string{
		"rm -r /t":           "",
		"rm -r --dry-run /t": "/t\n/t/a\n/t/a-b\n/t/c\n",
	} {
		got := invoke(t.Context(), strings.Fields(args), environ...)
		if got.code != CodeRefused || got.stdout != stdout || !strings.Contains(got.stderr, "/t/a") {
			t.Errorf("%s: %+v, want code %d and %q", args, got, CodeRefused, stdout)
		}
	}
	if s, err := client.CheckExists().ForPath(t.Context(), "/t/a-b"); err != nil || s == nil {
		t.Errorf("/t/a-b: %v %v", s, err)
	}
}

// TestRmTwiceAtOnce has another rm -r that deletes the node first.
func TestRmTwiceAtOnce(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/t/a", nil)
	testclient.Must(t, err)
	held := server.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: "/t", Action: curatortest.HoldRequest, Count: 1,
	})
	done := make(chan result)
	environ := "CURATOR_CONNECT=" + server.ConnectString()
	go func() { done <- invoke(t.Context(), []string{"rm", "-r", "/t"}, environ) }()
	testclient.Must(t, held.Wait(testenv.Context(t)))
	if got := invoke(t.Context(), []string{"rm", "-r", "/t"}, environ); got.code != CodeOK {
		t.Errorf("the one: %+v", got)
	}
	held.Release()
	if got := <-done; got.code != CodeOK {
		t.Errorf("the other: %+v", got)
	}
}

// TestTablesAreNoOrdersForATerminal has a name that changes the direction of the text behind it.
func TestTablesAreNoOrdersForATerminal(t *testing.T) {
	environ, connect := connected(t)
	const name = "\u202eexe.gpj"
	_, err := testclient.Connect(t, connect).Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/d/"+name,
		[]byte("\x1b[2J"))
	testclient.Must(t, err)
	for _, args := range []string{
		"ls /d", "ls -l /d", "tree /d --data", "find /d", "rm -r /d --dry-run", "tree /d/" + name, "stat /d/" + name,
		"create /d/" + name + "/e", "holders /", "get /none/" + name, "find /d --depth " + name, "get /none/\x1b[2J",
	} {
		got := invoke(t.Context(), strings.Fields(args), environ...)
		if strings.ContainsAny(got.stdout+got.stderr, "\u202e\x1b") {
			t.Errorf("%q: %q %q", args, got.stdout, got.stderr)
		}
	}
	// A program that reads gets the names as they are.
	for _, args := range []string{"find /d -0", "find /d -o json", "ls /d -o json"} {
		if got := invoke(t.Context(), strings.Fields(args), environ...); !strings.Contains(got.stdout, name) {
			t.Errorf("%s: %q", args, got.stdout)
		}
	}
}

func TestRmMeetsNewNodes(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/t/a/b", nil)
	testclient.Must(t, err)
	held := server.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: "/t/a/b", Action: curatortest.HoldRequest, Count: 1,
	})
	done := make(chan result)
	go func() {
		done <- invoke(t.Context(), []string{"rm", "-r", "/t"}, "CURATOR_CONNECT="+server.ConnectString())
	}()
	testclient.Must(t, held.Wait(testenv.Context(t)))
	_, err = client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/t/a/new/deep", nil)
	testclient.Must(t, err)
	held.Release()
	if got := <-done; got.code != CodeOK || server.Exists("/t") {
		t.Errorf("rm -r: %+v, /t exists: %v", got, server.Exists("/t"))
	}
}

func TestChmodSetsPermissions(t *testing.T) {
	connect := curatortest.NewServerT(t).ConnectString() // of its own: not even the test may read the nodes at its end
	environ, client := []string{"CURATOR_CONNECT=" + connect}, grow(t, connect)
	acl := func(path string) string {
		acl, err := client.GetACL().ForPath(t.Context(), path)
		testclient.Must(t, err)
		return formatACL(acl)
	}
	const want = "world:anyone:ra,ip:10.0.0.0/8:cdrwa"
	expect(t, environ, "chmod "+want+" /t/a", "")
	if got := acl("/t/a"); got != want {
		t.Errorf("chmod: %s", got)
	}
	if got := acl("/t/a/note"); got != "world:anyone:cdrwa" {
		t.Errorf("chmod without -R: %s", got)
	}
	expect(t, environ, "chmod -R world:anyone:a /t", "")
	for _, path := range []string{"/t", "/t/a", "/t/a/lock", "/t/a/note", "/t/a-b", "/t/c"} {
		if got := acl(path); got != "world:anyone:a" {
			t.Errorf("chmod -R: %s has %s", path, got)
		}
	}
	got := invoke(t.Context(), []string{"chmod", "-R", "world:anyone:cdrwa", "/t"}, environ...)
	if got.code != CodeRefused {
		t.Errorf("chmod -R of nodes that cannot be listed: %+v", got)
	}
	got = invoke(t.Context(), []string{"chmod", "-R", "world:anyone:cdrwa", "/zookeeper"}, environ...)
	if got.code != CodeRefused { // its nodes are the servers' own, with permissions of their own
		t.Errorf("chmod -R of /zookeeper: %+v", got)
	}
	for _, bad := range []string{"world:anyone", "world:anyone:x", ":a:r", ""} {
		if got := invoke(t.Context(), []string{"chmod", bad, "/t"}, environ...); got.code != CodeUsage {
			t.Errorf("chmod %q: %+v", bad, got)
		}
	}
}

// TestChmodOfTheRootLeavesTheServersNodes sets the permissions of all nodes but those of the servers: these refuse it
// for some, and the others would be half done.
func TestChmodOfTheRootLeavesTheServersNodes(t *testing.T) {
	connect := curatortest.NewServerT(t).ConnectString()
	environ, client := []string{"CURATOR_CONNECT=" + connect}, grow(t, connect)
	expect(t, environ, "chmod -R world:anyone:ra /", "")
	for path, want := range map[string]string{
		"/": "world:anyone:ra", "/t/a/note": "world:anyone:ra", "/zookeeper": "world:anyone:cdrwa",
		"/zookeeper/config": "world:anyone:r",
	} {
		acl, err := client.GetACL().ForPath(t.Context(), path)
		testclient.Must(t, err)
		if got := formatACL(acl); got != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
	}
}

// following runs the program while the test reads its lines. The program ends before the test does.
func following(t *testing.T, args []string, environ ...string) (line func() string, code func() int) {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	env := environment(environ)
	var stderr bytes.Buffer
	env.Args, env.Stdin, env.Stdout, env.Stderr = args, strings.NewReader(""), w, &stderr
	done := make(chan int, 1)
	go func() {
		code := Main(ctx, env)
		_ = w.Close()
		done <- code
	}()
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		_ = r.Close()
		<-ended
	})
	result := -1
	go func() {
		defer close(ended)
		result = <-done
	}()
	lines := bufio.NewScanner(r)
	return func() string {
			t.Helper()
			if !lines.Scan() {
				t.Fatalf("%v has ended: %v, %s", args, lines.Err(), stderr.String())
			}
			return lines.Text()
		}, func() int {
			t.Helper()
			for lines.Scan() { // a program that prints more than was wanted does not wait for a reader
				t.Errorf("%v goes on with %q", args, lines.Text())
			}
			<-ended
			return result
		}
}

func TestWatchFollowsATree(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	line, code := following(t, strings.Fields("watch /w --data -n 4"), "CURATOR_CONNECT="+server.ConnectString())
	event := func() string { return strings.Join(strings.Fields(line())[1:], " ") }
	want := func(want string) {
		t.Helper()
		if got := event(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	want("watching /w")
	_, err := client.Create().ForPath(t.Context(), "/w", []byte("x"))
	testclient.Must(t, err)
	want("created /w x")
	_, err = client.Create().ForPath(t.Context(), "/w/b", []byte("\xff"))
	testclient.Must(t, err)
	want("created /w/b base64:/w==")

	server.Faults().CutAll()
	want("suspended")
	want("resumed")
	_, err = client.SetData().ForPath(t.Context(), "/w", []byte("y"))
	testclient.Must(t, err)
	want("changed /w y")
	testclient.Must(t, client.Delete().ForPath(t.Context(), "/w/b"))
	want("deleted /w/b")
	if got := code(); got != CodeOK {
		t.Errorf("code %d", got)
	}
}

// TestFollowersOutliveAnOutage has an outage that is longer than the retries of a read which it meets.
func TestFollowersOutliveAnOutage(t *testing.T) {
	for args, op := range map[string]string{"watch /w --data": "getData", "holders /w -f -o json": "multiRead"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server := curatortest.NewServerT(t)
			client := testclient.Connect(t, server.ConnectString())
			create := func() string {
				node, err := client.Create().CreatingParentsIfNeeded().WithMode(builders.EphemeralSequential).
					ForPath(t.Context(), "/w/lock-", nil)
				testclient.Must(t, err)
				return node
			}
			create()
			line, _ := following(t, strings.Fields(args), "CURATOR_CONNECT="+server.ConnectString())
			line() // it follows
			cuts := server.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: curatortest.CutBefore})
			node := create()
			end := time.AfterFunc(9*time.Second, cuts.Remove) // the client tries again for a shorter time
			defer end.Stop()
			for !strings.Contains(line(), node[len("/w/"):]) { // fails at the end of the program
			}
		})
	}
}

func TestWatchOfAnOldServerFails(t *testing.T) {
	server := curatortest.NewServerT(t)
	server.Faults().Add(curatortest.Rule{
		Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
	})
	got := invoke(t.Context(), []string{"watch", "/w"}, "CURATOR_CONNECT="+server.ConnectString())
	if got.code != CodeFailed {
		t.Errorf("watch: %+v", got)
	}
}

func TestCompletionOfPaths(t *testing.T) {
	environ, _ := grown(t)
	testenv.Eventually(t, func() bool { // a server that is slow to answer is not waited for
		got := invoke(t.Context(), []string{"__complete", "tree", "/t/a"}, environ...)
		return strings.HasPrefix(got.stdout, "/t/a\n/t/a-b\n:")
	}, "the paths are completed")
}
