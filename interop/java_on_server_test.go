package interop_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// onBothServers runs a story of Java Curator alone on Apache ZooKeeper and on the in-process server: it has to go the
// same way.
func onBothServers(t *testing.T, story func(t *testing.T, j *java, server testenv.Instance)) {
	t.Helper()
	for name, server := range map[string]testenv.Instance{
		"real":       testenv.Server(t),
		"in process": curatortest.NewServerT(t),
	} {
		t.Run(name, func(t *testing.T) {
			j := startJava(t)
			for _, client := range []string{"a", "b"} {
				j.must("start", interop.Args{
					"client": client, "connect": server.ConnectString(),
					"namespace": strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()), "sessionTimeoutMs": 4000,
				}, nil)
			}
			story(t, j, server)
		})
	}
}

// session gives the id of a client's session.
func (j *java) session(client string) (id int64) {
	j.t.Helper()
	j.must("sessionId", interop.Args{"client": client}, &id)
	return id
}

// event waits for an event of an object.
func (j *java) event(kind, name string) interop.Event {
	j.t.Helper()
	ev, err := j.WaitEvent(j.ctx, func(ev interop.Event) bool { return ev.Kind == kind && ev.Name == name })
	if err != nil {
		j.t.Fatalf("no %s of %s: %v", kind, name, err)
	}
	return ev
}

func TestJavaMutexOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *java, server testenv.Instance) {
		t.Helper()
		for _, name := range []string{"a", "b"} {
			j.must("mutexNew", interop.Args{"client": name, "name": name, "path": "/lock"}, nil)
		}
		a := interop.Args{"name": "a", "thread": "a", "timeoutMs": -1}
		b := interop.Args{"name": "b", "thread": "b", "timeoutMs": -1}
		j.truth("mutexAcquire", a)
		var got bool
		j.must("mutexAcquire", interop.Args{"name": "b", "thread": "b", "timeoutMs": 50}, &got)
		if got {
			t.Error("two hold it")
		}
		waiting := make(chan error, 1)
		go func() { waiting <- j.Call(j.ctx, "mutexAcquire", b, nil) }()
		j.must("mutexRelease", a, nil)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		go func() { waiting <- j.Call(j.ctx, "mutexAcquire", a, nil) }()
		if err := server.ExpireSession(j.session("b")); err != nil {
			t.Error(err)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		j.must("mutexRelease", a, nil)
	})
}

func TestJavaLatchOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *java, server testenv.Instance) {
		t.Helper()
		j.must("latchStart", interop.Args{"client": "a", "name": "a", "path": "/latch", "participant": "A"}, nil)
		j.event("isLeader", "a")
		j.must("latchStart", interop.Args{"client": "b", "name": "b", "path": "/latch", "participant": "B"}, nil)
		testenv.Eventually(t, func() bool {
			var ids []string
			j.must("latchParticipants", interop.Args{"name": "a"}, &ids)
			return slices.Equal(ids, []string{"A", "B"})
		}, "both take part")
		if leader := j.text("latchLeader", interop.Args{"name": "b"}); leader != "A" {
			t.Errorf("leader %s", leader)
		}
		if err := server.ExpireSession(j.session("a")); err != nil {
			t.Error(err)
		}
		j.event("isLeader", "b")
		j.event("notLeader", "a")
		j.must("latchClose", interop.Args{"name": "b"}, nil)
		j.truth("latchAwait", interop.Args{"name": "a", "timeoutMs": 20_000})
		j.must("latchClose", interop.Args{"name": "a"}, nil)
	})
}

func TestJavaQueueOnEitherServer(t *testing.T) {
	for _, lockPath := range []string{"", "/locks"} {
		t.Run("lock path "+lockPath, func(t *testing.T) {
			onBothServers(t, func(t *testing.T, j *java, _ testenv.Instance) {
				t.Helper()
				const items = 200
				start := interop.Args{"client": "a", "name": "put", "path": "/queue"}
				consume := interop.Args{"client": "b", "name": "take", "path": "/queue", "consume": true}
				if lockPath != "" {
					start["lockPath"], consume["lockPath"] = lockPath, lockPath
				}
				j.must("queueStart", start, nil)
				j.must("queueStart", consume, nil)
				for i := range items {
					j.must("queuePut", interop.Args{"name": "put", "item": fmt.Sprint(i)}, nil)
				}
				j.truth("queueFlush", interop.Args{"name": "put", "timeoutMs": 20_000})
				var got []string
				for range items {
					got = append(got, j.event("item", "take").Item)
				}
				slices.Sort(got)
				if got = slices.Compact(got); len(got) != items {
					t.Errorf("%d items", len(got))
				}
				j.must("queueClose", interop.Args{"name": "put"}, nil)
				j.must("queueClose", interop.Args{"name": "take"}, nil)
			})
		})
	}
}

func TestJavaCacheOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *java, server testenv.Instance) {
		t.Helper()
		dump := func() (nodes map[string]string) {
			j.must("cacheDump", interop.Args{"name": "c"}, &nodes)
			return nodes
		}
		put := func(path, data string) {
			j.must("create", interop.Args{"client": "a", "path": path, "data": interop.Bytes(data), "parents": true}, nil)
		}
		put("/tree", "")
		put("/tree/a", "1")
		put("/tree/a/b", "2")
		j.must("cacheStart", interop.Args{"client": "b", "name": "c", "path": "/tree"}, nil)
		j.event("initialized", "c")
		if diff := cmp.Diff(map[string]string{"/tree": "", "/tree/a": "1", "/tree/a/b": "2"}, dump()); diff != "" {
			t.Error(diff)
		}
		put("/tree/c", "3")
		for ev := j.event("created", "c"); ev.Path != "/tree/c"; {
			ev = j.event("created", "c")
		}
		j.must("setData", interop.Args{"client": "a", "path": "/tree/a", "data": interop.Bytes("4")}, nil)
		if ev := j.event("changed", "c"); ev.Path != "/tree/a" || ev.Item != "4" {
			t.Errorf("changed %+v", ev)
		}
		j.must("delete", interop.Args{"client": "a", "path": "/tree/a/b"}, nil)
		if ev := j.event("deleted", "c"); ev.Path != "/tree/a/b" {
			t.Errorf("deleted %+v", ev)
		}
		// What happens while the cache has no connection it finds when it has one again.
		if err := server.DropConnection(j.session("b")); err != nil {
			t.Error(err)
		}
		put("/tree/d", "5")
		testenv.Eventually(t, func() bool {
			return cmp.Equal(dump(), map[string]string{"/tree": "", "/tree/a": "4", "/tree/c": "3", "/tree/d": "5"})
		}, "the cache is the tree")
		j.must("cacheClose", interop.Args{"name": "c"}, nil)
	})
}

// TestCommandLineOnEitherServer compares what the command line of Apache ZooKeeper prints.
func TestCommandLineOnEitherServer(t *testing.T) {
	testenv.RequireReal(t)
	classPath, err := interop.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{
		"create /cli", "create /cli/a one", "create -s /cli/s- two", "create -c /cli/c three", "get /cli/a", "set /cli/a four",
		"ls -R /cli", "getAcl /cli/a", "getAllChildrenNumber /cli", "create -e /cli/e five", "getEphemerals /cli",
		"addauth digest u:p", "setAcl /cli/a auth:u:p:crdwa", "getAcl /cli/a", "whoami", "sync /cli", "get /nowhere", "deleteall /cli",
	}
	var said []string
	for _, addr := range []string{testenv.Server(t).Addr(), curatortest.NewServerT(t).Addr()} {
		cmd := exec.CommandContext(testenv.Context(t), "java", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jline.disable=true",
			"-cp", classPath, "org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", addr)
		cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\nquit\n")
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			t.Logf("the command line ends with %v", err)
		}
		said = append(said, strings.ReplaceAll(out.String(), addr, "the server"))
	}
	if !strings.Contains(said[0], "four") && !strings.Contains(said[0], "/cli/s-0000000001") {
		t.Fatalf("no answers: %s", said[0])
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("(-real +in process)\n%s", diff)
	}
}

// TestPlainLibraryOnEitherServer has go-zookeeper by itself use the server.
func TestPlainLibraryOnEitherServer(t *testing.T) {
	for name, addr := range map[string]string{
		"tests' server": testenv.Server(t).Addr(),
		"in process":    curatortest.NewServerT(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			conn, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				conn.Close()
				for range events {
					continue // until its goroutines have ended
				}
			}()
			must := func(_ any, err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			anyone := zk.WorldACL(zk.PermAll)
			must(conn.Create("/plain", []byte("x"), 0, anyone))
			_, _, changed, err := conn.GetW("/plain")
			must(nil, err)
			must(conn.Multi(&zk.SetDataRequest{Path: "/plain", Data: []byte("y"), Version: 0},
				&zk.CreateRequest{Path: "/plain/n-", Acl: anyone, Flags: zk.FlagSequence | zk.FlagEphemeral}))
			if ev := <-changed; ev.Type != zk.EventNodeDataChanged {
				t.Errorf("event %v", ev)
			}
			must(nil, conn.AddAuth("digest", []byte("u:p")))
			must(conn.SetACL("/plain", zk.DigestACL(zk.PermAll, "u", "p"), 0))
			must(conn.CreateContainer("/plain/c", nil, zk.FlagContainer, anyone))
			lock := zk.NewLock(conn, "/plain/lock", anyone)
			must(nil, lock.Lock())
			must(nil, lock.Unlock())
			children, stat, err := conn.Children("/plain")
			if err != nil || len(children) != 3 || stat.Aversion != 1 {
				t.Errorf("children %v, aversion %d, error %v", children, stat.Aversion, err)
			}
			for _, child := range children {
				must(nil, conn.Delete("/plain/"+child, -1))
			}
			must(nil, conn.Delete("/plain", -1))
		})
	}
}
