package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	j, session := startClient(t)

	got := j.text("create", interop.Args{"path": "/a/b", "data": interop.Bytes("\x00\xff"), "parents": true})
	if got != "/a/b" {
		t.Errorf("created %q", got)
	}
	var node interop.NodeData
	j.must("getData", interop.Args{"path": "/a/b"}, &node)
	if string(node.Data) != "\x00\xff" || node.Stat.DataLength != 2 || node.Stat.EphemeralOwner != 0 {
		t.Errorf("read %x, %+v", node.Data, node.Stat)
	}

	var stat *interop.NodeStat
	j.must("setData", interop.Args{"path": "/a/b", "data": interop.Bytes{}}, &stat)
	if stat == nil || stat.Version != 1 || stat.DataLength != 0 {
		t.Errorf("set, and then %+v", stat)
	}
	j.must("exists", interop.Args{"path": "/none"}, &stat)
	if stat != nil {
		t.Errorf("a node that is not there has %+v", stat)
	}
	var children []string
	j.must("children", interop.Args{"path": "/a"}, &children)
	if !cmp.Equal(children, []string{"b"}) {
		t.Errorf("children %q", children)
	}

	j.must("create", interop.Args{"path": "/e", "mode": "EPHEMERAL"}, nil)
	j.must("getData", interop.Args{"path": "/e"}, &node)
	if ip := net.ParseIP(string(node.Data)); ip == nil || node.Stat.EphemeralOwner != session {
		t.Errorf("default data %q of owner %x, not an address of %x", node.Data, node.Stat.EphemeralOwner, session)
	}

	j.must("create", interop.Args{"path": "/z", "data": interop.Bytes("hello"), "compressed": true}, nil)
	j.must("getData", interop.Args{"path": "/z"}, &node)
	// The byte for the operating system is 0, or from 5.6.0 on what the virtual machine writes: 255 since Java 16.
	compressed := fmt.Sprintf("%x", node.Data)
	if !regexp.MustCompile(`^1f8b08000000000000(00|ff)cb48cdc9c9070086a6103605000000$`).MatchString(compressed) {
		t.Errorf("compressed is %s", compressed)
	}
	j.must("getData", interop.Args{"path": "/z", "compressed": true}, &node)
	if string(node.Data) != "hello" {
		t.Errorf("decompressed is %q", node.Data)
	}

	j.must("delete", interop.Args{"path": "/a", "children": true, "guaranteed": true}, nil)
	err := j.Call(j.ctx, "getData", interop.Args{"path": "/a"}, nil)
	var remote *interop.RemoteError
	if !errors.As(err, &remote) || remote.Class != "NoNodeException" || remote.Cmd != "getData" {
		t.Errorf("read after delete: %v", err)
	}
}

func TestNamespaceAndClients(t *testing.T) {
	t.Parallel()
	j, _ := startClient(t)
	connect := testenv.ConnectString(t)
	j.must("start", interop.Args{"client": "in", "connect": connect, "namespace": "my/ns"}, nil)
	j.start("out", connect)
	j.must("create", interop.Args{"client": "in", "path": "/n"}, nil)
	var node interop.NodeData
	j.must("getData", interop.Args{"client": "out", "path": "/my/ns/n"}, &node)
	j.must("close", interop.Args{"client": "in"}, nil)
	if err := j.Call(j.ctx, "sessionId", interop.Args{"client": "in"}, nil); err == nil {
		t.Error("a closed client is still there")
	}
}

func TestProtectedNames(t *testing.T) {
	t.Parallel()
	j, _ := startClient(t)
	created := j.text("create", interop.Args{
		"path": "/p-", "mode": "EPHEMERAL_SEQUENTIAL", "protection": true, "containers": true,
	})
	name := path.Base(created)
	if !j.truth("isProtected", interop.Args{"name": name}) {
		t.Errorf("Java does not know its own name %q", name)
	}
	if got := j.text("normalize", interop.Args{"name": name}); got != "p-0000000000" {
		t.Errorf("normalized %q is %q", name, got)
	}
}

// TestMutex runs two Java threads at one lock, and checks their nodes.
func TestMutex(t *testing.T) {
	t.Parallel()
	j, session := startClient(t)
	m1 := interop.Args{"name": "m", "thread": "t1"}
	m2 := interop.Args{"name": "m", "thread": "t2"}
	j.must("mutexNew", interop.Args{"name": "m", "path": "/locks/m"}, nil)

	if !j.truth("mutexAcquire", m1) {
		t.Fatal("a free lock was not acquired")
	}
	held := j.text("mutexPath", m1)
	layout := regexp.MustCompile(`^/locks/m/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-[0-9]{10}$`)
	if !layout.MatchString(held) {
		t.Errorf("the lock node is %q", held)
	}
	var node interop.NodeData
	j.must("getData", interop.Args{"path": held}, &node)
	if node.Stat.EphemeralOwner != session {
		t.Errorf("the lock node belongs to %x, not %x", node.Stat.EphemeralOwner, session)
	}
	t.Logf("lock node %s, data %q, %+v", held, node.Data, node.Stat)

	if j.truth("mutexAcquire", interop.Args{"name": "m", "thread": "t2", "timeoutMs": 0}) {
		t.Error("a held lock was acquired")
	}
	if !j.truth("mutexOwned", m1) || j.truth("mutexOwned", m2) {
		t.Error("the lock is owned by the wrong thread")
	}
	if err := j.Call(j.ctx, "mutexRelease", m2, nil); err == nil {
		t.Error("a thread released what it does not hold")
	}

	var acquired bool
	waiting := j.async("mutexAcquire", m2, &acquired)
	testenv.Eventually(t, func() bool { return len(j.participants()) == 2 }, "a second participant")
	if got := j.participants(); got[0] != held {
		t.Errorf("the first of %q is not the holder", got)
	}
	j.must("mutexRelease", m1, nil)
	if err := <-waiting; err != nil || !acquired {
		t.Errorf("the waiter was not let in: %t, %v", acquired, err)
	}
	j.must("mutexRelease", m2, nil)
	if got := j.participants(); len(got) != 0 {
		t.Errorf("nodes stay behind: %q", got)
	}
}

// participants returns the line of the mutex "m".
func (j *peer) participants() (paths []string) {
	j.t.Helper()
	j.must("mutexParticipants", interop.Args{"name": "m"}, &paths)
	return paths
}

func TestMutexLockData(t *testing.T) {
	t.Parallel()
	j, _ := startClient(t)
	j.must("mutexNew", interop.Args{"name": "m", "path": "/m", "lockData": interop.Bytes("mine")}, nil)
	thread := interop.Args{"name": "m", "thread": "t"}
	j.must("mutexAcquire", thread, nil)
	var node interop.NodeData
	j.must("getData", interop.Args{"path": j.text("mutexPath", thread)}, &node)
	if string(node.Data) != "mine" {
		t.Errorf("lock data %q", node.Data)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	j, _ := startClient(t)
	j.must("mutexNew", interop.Args{"name": "m", "path": "/m"}, nil)
	thread := interop.Args{"name": "m", "thread": "t"}
	j.must("mutexMakeRevocable", thread, nil)
	j.must("mutexAcquire", thread, nil)
	j.must("revoke", interop.Args{"path": j.text("mutexPath", thread)}, nil)
	ev, err := j.WaitEvent(j.ctx, func(ev interop.Event) bool { return ev.Kind == "revoked" })
	if err != nil || ev.Name != "m" {
		t.Errorf("event %+v, %v", ev, err)
	}
}

func TestKillSession(t *testing.T) {
	t.Parallel()
	j, session := startClient(t)
	j.must("create", interop.Args{"path": "/e", "mode": "EPHEMERAL"}, nil)
	j.must("killSession", nil, nil)
	j.awaitState("", "LOST")
	j.awaitState("", "RECONNECTED")
	var next int64
	j.must("sessionId", nil, &next)
	if next == session || next == 0 {
		t.Errorf("session %x after %x", next, session)
	}
	var stat *interop.NodeStat
	j.must("exists", interop.Args{"path": "/e"}, &stat)
	if stat != nil {
		t.Error("the session's node outlived it")
	}
}

// TestCall checks failures between the processes, without a server.
func TestCall(t *testing.T) {
	t.Parallel()
	j := startJava(t)
	var remote *interop.RemoteError
	if err := j.Call(j.ctx, "nonsense", nil, nil); !errors.As(err, &remote) {
		t.Errorf("unknown command: %v", err)
	}
	if err := j.Call(j.ctx, "children", interop.Args{"client": "nobody"}, nil); !errors.As(err, &remote) {
		t.Errorf("unknown client: %v", err)
	}
	if err := j.Call(j.ctx, "version", interop.Args{"x": make(chan int)}, nil); err == nil {
		t.Error("an argument was sent that cannot be")
	}
	if err := j.Call(j.ctx, "version", nil, new(int)); err == nil {
		t.Error("a string was taken for a number")
	}
	ended, cancel := context.WithCancel(j.ctx)
	cancel()
	if err := j.Call(ended, "start", interop.Args{"connect": "127.0.0.1:1"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := j.WaitEvent(ended, func(interop.Event) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with an ended context: %v", err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	j, peer := ownJava(t)
	waiting := j.async("start", interop.Args{"connect": "127.0.0.1:1", "connectionTimeoutMs": 600_000}, nil)
	j.must("version", nil, nil)
	if err := peer.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, interop.ErrExited) {
		t.Errorf("a call to a dead process: %v", err)
	}
	if err := j.Call(j.ctx, "version", nil, nil); !errors.Is(err, interop.ErrExited) {
		t.Errorf("a call after death: %v", err)
	}
	if _, err := j.WaitEvent(j.ctx, func(interop.Event) bool { return false }); !errors.Is(err, interop.ErrExited) {
		t.Errorf("events of a dead process: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	j, peer := ownJava(t)
	for range 2 {
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := j.Call(j.ctx, "version", nil, nil); !errors.Is(err, interop.ErrExited) {
		t.Errorf("a call after close: %v", err)
	}
}

func TestBadPrograms(t *testing.T) {
	testenv.RequireReal(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx := testenv.Context(t)
	_, err := interop.Start(ctx, interop.Program{Class: "Bad", Source: []byte("class {")})
	if err == nil || !strings.Contains(err.Error(), "Bad.java:1") {
		t.Errorf("a program that does not compile: %v", err)
	}

	tests := []struct {
		name, body, want string
	}{
		{name: "fails", body: `throw new IllegalStateException("no way")`, want: "no way"},
		{name: "babbles", body: `System.out.println("hello"); System.in.read()`, want: "hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := "public class P { public static void main(String[] a) throws Exception { " + tt.body + "; } }"
			peer, err := interop.Start(ctx, interop.Program{Class: "P", Source: []byte(source)})
			if err != nil {
				t.Fatal(err)
			}
			err = peer.Call(ctx, "version", nil, nil)
			if !errors.Is(err, interop.ErrExited) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("call: %v", err)
			}
			if err := peer.Close(); err == nil {
				t.Error("the failure was not reported")
			}
		})
	}
}

// TestCompileAtOnce lets two callers, in the place of two test processes, find a program that is not compiled yet.
func TestCompileAtOnce(t *testing.T) {
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	t.Setenv("TMPDIR", t.TempDir())
	prog := interop.Program{Class: "P", Source: []byte("public class P {}")}
	var wg sync.WaitGroup
	dirs := make([]string, 2)
	for i := range dirs {
		wg.Go(func() {
			dir, err := interop.Compile(ctx, prog)
			if err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
	}
	wg.Wait()
	if _, err := os.Stat(filepath.Join(dirs[0], "P.class")); err != nil || dirs[0] != dirs[1] {
		t.Errorf("compiled into %q: %v", dirs, err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	one := startJava(t)
	two := &peer{Scope: one.Peer().Scope(t.Name()), t: t, ctx: one.ctx}
	if first, second := one.start("c", connect), two.start("c", connect); first == second {
		t.Error("a client of one scope is that of another")
	}
	one.awaitState("c", "CONNECTED")
	queue := two.create("queue", "Start", "q", interop.Args{"client": "c", "path": "/q", "consume": true})
	queue.do("PutMulti", interop.Args{"items": []string{"x", "y", "z"}}, nil)
	for _, want := range []string{"y", "x", "z"} { // the others stay until they are asked for
		_, err := two.WaitEvent(two.ctx, func(ev interop.Event) bool { return ev.Name == "q" && ev.Item == want })
		if err != nil {
			t.Fatal(err)
		}
	}
	if events := one.TakeEvents(); len(events) != 0 {
		t.Errorf("events of another scope: %+v", events)
	}
	if err := two.Close(two.ctx); err != nil {
		t.Fatal(err)
	}
	var remote *interop.RemoteError
	if err := two.Call(two.ctx, "sessionId", interop.Args{"client": "c"}, nil); !errors.As(err, &remote) {
		t.Errorf("a client outlives its scope: %v", err)
	}
	one.must("sessionId", interop.Args{"client": "c"}, nil)
	if err := two.Close(two.ctx); err != nil {
		t.Fatal(err)
	}
}
