package interop_test

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// startGo returns a client of ours on the nodes of a Java client.
func startGo(t *testing.T, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(4 * time.Second)}, opts...)
	client, err := framework.New(connect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// startBoth returns a Java client and one of ours on the same nodes.
func startBoth(t *testing.T) (*java, *framework.Client) {
	t.Helper()
	connect := testenv.ConnectString(t)
	j := startJava(t)
	j.start("", connect)
	return j, startGo(t, connect)
}

const mixedLock = "/locks/mixed"

func TestGoAndJavaExcludeEachOther(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const rounds = 60
	var inside, entered, handovers atomic.Int32
	var last atomic.Value
	last.Store("")
	enter := func(side string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d inside", n)
		}
		if last.Swap(side) != side {
			handovers.Add(1)
		}
		entered.Add(1)
		inside.Add(-1)
	}
	var wg sync.WaitGroup
	begin := make(chan struct{}) // when all are there: else the first are done before the others come
	for range 2 {
		client := startGo(t, connect)
		wg.Go(func() {
			mu := locks.NewInterProcessMutex(client, mixedLock)
			<-begin
			for range rounds {
				hold, err := mu.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				enter("go")
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
		j := startJava(t)
		j.start("", connect)
		j.must("mutexNew", interop.Args{"name": "m", "path": mixedLock}, nil)
		wg.Go(func() {
			<-begin
			for range rounds {
				var acquired bool
				args := interop.Args{"name": "m", "thread": "t", "timeoutMs": -1}
				if err := j.Call(ctx, "mutexAcquire", args, &acquired); err != nil || !acquired {
					t.Errorf("acquired %v: %v", acquired, err)
					return
				}
				enter("java")
				if err := j.Call(ctx, "mutexRelease", interop.Args{"name": "m", "thread": "t"}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	if n := entered.Load(); n != 4*rounds {
		t.Errorf("entered %d times", n)
	}
	if n := handovers.Load(); n < 10 {
		t.Errorf("only %d hand-overs between Go and Java: they did not contend", n)
	}
}

func TestHeldMutexLooksTheSameInBoth(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	dump := func(held string) (tree []string) {
		for at := held; at != "/"; at = zkpath.Parent(at) {
			var stat zk.Stat
			data, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			acl, err := client.GetACL().ForPath(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			name := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(at, "<uuid>")
			name = regexp.MustCompile(`\d{10}$`).ReplaceAllString(name, "<seq>")
			ephemeral := stat.EphemeralOwner != 0
			tree = append(tree, strings.TrimSpace(strings.Join([]string{
				name, string(data), map[bool]string{true: "ephemeral"}[ephemeral], acl[0].Scheme, acl[0].ID,
			}, " ")))
		}
		return tree
	}
	hold, err := locks.NewInterProcessMutex(client, "/held/go").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ours := dump(hold.Path())
	j.must("mutexNew", interop.Args{"name": "m", "path": "/held/java"}, nil)
	j.yes("mutexAcquire", interop.Args{"name": "m", "thread": "t", "timeoutMs": -1})
	theirs := dump(j.text("mutexPath", interop.Args{"name": "m", "thread": "t"}))
	for i := range theirs {
		theirs[i] = strings.Replace(theirs[i], "/held/java", "/held/go", 1)
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("Java's and ours differ:\n%s", diff)
	}
	// Both parents are containers: emptied, they vanish.
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	j.must("mutexRelease", interop.Args{"name": "m", "thread": "t"}, nil)
	testenv.Eventually(t, func() bool {
		stat, err := client.CheckExists().ForPath(ctx, "/held")
		return err == nil && stat == nil
	}, "containers vanish")
}

func TestEachSideWaitsForTheOtherAndSurvivesTheLossOfItsSession(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	j := startJava(t)
	javaSession := j.start("", connect)
	j.must("mutexNew", interop.Args{"name": "m", "path": mixedLock}, nil)
	client := startGo(t, connect)
	mu := locks.NewInterProcessMutex(client, mixedLock)
	lineIs := func(n int) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			nodes, err := mu.ParticipantNodes(ctx)
			if err != nil || len(nodes) != n {
				return false
			}
			return slices.Equal(nodes, j.participants()) // both sides see one order
		}, "contenders in line")
	}

	// Java holds and its session ends; Go waits and gets the lock.
	j.yes("mutexAcquire", interop.Args{"name": "m", "thread": "t", "timeoutMs": -1})
	granted := make(chan *locks.Hold, 1)
	go func() {
		hold, err := mu.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		granted <- hold
	}()
	lineIs(2)
	if err := testenv.Server(t).ExpireSession(javaSession); err != nil {
		t.Fatal(err)
	}
	hold := <-granted
	if hold == nil {
		t.FailNow()
	}

	// Go holds and its session ends; Java waits and gets the lock.
	j.awaitState("", "RECONNECTED")
	var acquired bool
	done := j.async("mutexAcquire", interop.Args{"name": "m", "thread": "u", "timeoutMs": -1}, &acquired)
	lineIs(2)
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !acquired {
		t.Fatalf("acquired %v: %v", acquired, err)
	}
	select {
	case <-hold.Context().Done():
	case <-ctx.Done():
		t.Error("the hold of Go does not end with its session")
	}
	j.must("mutexRelease", interop.Args{"name": "m", "thread": "u"}, nil)
	lineIs(0)
}

func TestRevocationGoesBothWays(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	mu := locks.NewInterProcessMutex(client, mixedLock)
	asked := make(chan struct{})
	mu.MakeRevocable(func(hold *locks.Hold) {
		if err := hold.Release(context.Background()); err != nil {
			t.Error(err)
		}
		close(asked)
	})
	hold, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	j.must("revoke", interop.Args{"path": hold.Path()}, nil)
	<-asked

	j.must("mutexNew", interop.Args{"name": "m", "path": mixedLock}, nil)
	j.must("mutexMakeRevocable", interop.Args{"name": "m", "thread": "t"}, nil)
	j.yes("mutexAcquire", interop.Args{"name": "m", "thread": "t", "timeoutMs": -1})
	if err := locks.Revoke(ctx, client, j.text("mutexPath", interop.Args{"name": "m", "thread": "t"})); err != nil {
		t.Fatal(err)
	}
	if _, err := j.WaitEvent(ctx, func(e interop.Event) bool { return e.Kind == "revoked" }); err != nil {
		t.Fatal(err)
	}
	j.must("mutexRelease", interop.Args{"name": "m", "thread": "t"}, nil)
}

func TestProtectedNamesAreJavas(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	for _, mode := range []builders.CreateMode{
		builders.Persistent, builders.Ephemeral, builders.PersistentSequential, builders.EphemeralSequential,
	} {
		foreground, err := client.Create().WithProtection().WithMode(mode).ForPath(ctx, "/n-", nil)
		if err != nil {
			t.Fatal(err)
		}
		background := make(chan string, 1)
		if err := client.Create().WithProtection().WithMode(mode).InBackground(nameTo(background)).
			ForPath(ctx, "/n-", nil); err != nil {
			t.Fatal(err)
		}
		theirs := j.text("create", interop.Args{"path": "/n-", "mode": mode.String(), "protection": true})
		for _, created := range []string{foreground, <-background, theirs} {
			name := path.Base(created)
			if !j.truth("isProtected", interop.Args{"name": name}) || !zkpath.IsProtected(name) {
				t.Errorf("%v: %s is not protected for both", mode, name)
			}
			if java, ours := j.text("normalize", interop.Args{"name": name}), zkpath.Normalize(name); java != ours {
				t.Errorf("%v: normalized %s by Java, %s by us", mode, java, ours)
			}
		}
	}
}

func TestDataIsReadByBoth(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	for _, data := range [][]byte{{}, []byte("hello"), bytes.Repeat([]byte("curator "), 20_000)} {
		for _, compressed := range []bool{false, true} {
			create := client.Create().Uncompressed()
			if compressed {
				create = create.Compressed()
			}
			ours, err := create.WithMode(builders.PersistentSequential).ForPath(ctx, "/d-", data)
			if err != nil {
				t.Fatal(err)
			}
			var got interop.NodeData
			j.must("getData", interop.Args{"path": ours, "compressed": compressed}, &got)
			if !bytes.Equal(got.Data, data) {
				t.Errorf("compressed %v: Java reads %d bytes of %d", compressed, len(got.Data), len(data))
			}
			theirs := j.text("create", interop.Args{
				"path": "/d-", "mode": "PERSISTENT_SEQUENTIAL", "data": interop.Bytes(data), "compressed": compressed,
			})
			get := client.GetData().Undecompressed()
			if compressed {
				get = get.Decompressed()
			}
			if read, err := get.ForPath(ctx, theirs); err != nil || !bytes.Equal(read, data) {
				t.Errorf("compressed %v: we read %d bytes of %d: %v", compressed, len(read), len(data), err)
			}
		}
	}
	// What is written for no data is the same on one machine.
	ours, err := client.Create().ForPath(ctx, "/default-go", nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := j.text("create", interop.Args{"path": "/default-java"})
	a, err := client.GetData().ForPath(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	b, err := client.GetData().ForPath(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Errorf("default data of Java and ours differ:\n%s", diff)
	}
}

func TestNamespaceIsTheSameTree(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	j := startJava(t)
	j.must("start", interop.Args{"connect": connect, "namespace": "my/ns", "sessionTimeoutMs": 4000}, nil)
	client := startGo(t, connect, framework.WithNamespace("my/ns"))
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var got interop.NodeData
	j.must("getData", interop.Args{"path": "/a/b"}, &got)
	if string(got.Data) != "x" {
		t.Errorf("Java reads %q", got.Data)
	}
	if err := client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
}

// nameTo sends the name of the node that was created.
func nameTo(ch chan<- string) callbacks.BackgroundCallback {
	return func(_ context.Context, ev callbacks.Event) { ch <- ev.Name }
}
