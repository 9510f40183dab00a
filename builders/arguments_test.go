package builders_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

var badPaths = []string{
	"", "n", "n/a", "//", "//n", "/n/", "/n//a", "/./n", "/n/.", "/n/..", "/../n", "/n\x00", "/n\x1f", "/n\x7f",
	"/\xff", "/n\ufff0", "/\U0001f600",
}

// wantNothingSent checks that no request has come to the proxy but what belongs to the session.
func wantNothingSent(tb testing.TB, proxy *curatortest.Proxy) {
	tb.Helper()
	for _, e := range proxy.Faults().Trace() {
		if e.Op != "connect" && e.Op != "closeSession" {
			tb.Errorf("sent: %+v", e)
		}
	}
}

// probe is a way in a test.
type probe struct {
	testing.TB
	way
}

func TestBadPaths(t *testing.T) {
	t.Parallel()
	client, _, proxy := setUpProxied(t)
	one, _ := chanWatcher()
	op := client.TransactionOp()
	transact := func(t probe, op builders.TransactionOperation) error {
		return t.transaction(t, client.Transaction(), client.TransactionOp().Check().ForPath("/"), op).Err
	}
	tests := map[string]func(t probe, p string) error{
		"create":      func(t probe, p string) error { return t.create(t, client.Create(), p, nil).Err },
		"delete":      func(t probe, p string) error { return t.delete(t, client.Delete(), p).Err },
		"exists":      func(t probe, p string) error { return t.exists(t, client.CheckExists(), p).Err },
		"getData":     func(t probe, p string) error { return t.getData(t, client.GetData(), p).Err },
		"setData":     func(t probe, p string) error { return t.setData(t, client.SetData(), p, nil).Err },
		"getChildren": func(t probe, p string) error { return t.getChildren(t, client.GetChildren(), p).Err },
		"getACL":      func(t probe, p string) error { return t.getACL(t, client.GetACL(), p).Err },
		"setACL": func(t probe, p string) error {
			return t.setACL(t, client.SetACL().WithACL(builders.OpenACL...), p).Err
		},
		"sync": func(t probe, p string) error { return t.sync(t, client.Sync(), p).Err },
		"addWatch": func(t probe, p string) error {
			return t.addWatch(t, client.Watches().Add().UsingWatcher(one), p).Err
		},
		"removeWatches": func(t probe, p string) error {
			return t.removeWatches(t, client.Watches().Remove(one), p).Err
		},
		"create in a transaction": func(t probe, p string) error {
			return transact(t, op.Create().ForPath(p, nil))
		},
		"setData in a transaction": func(t probe, p string) error {
			return transact(t, op.SetData().ForPath(p, nil))
		},
		"delete in a transaction": func(t probe, p string) error { return transact(t, op.Delete().ForPath(p)) },
		"check in a transaction":  func(t probe, p string) error { return transact(t, op.Check().ForPath(p)) },
	}
	for _, w := range ways {
		for name, run := range tests {
			t.Run(name+" in the "+string(w), func(t *testing.T) {
				verb, _, _ := strings.Cut(name, " ")
				for _, p := range badPaths {
					wantErr(t, run(probe{t, w}, p), zk.ErrInvalidPath, verb, p)
				}
			})
		}
		b := client.Create().WithMode(builders.PersistentSequential) // may end in a slash, but not in two
		for _, p := range []string{"", "n", "/n//", "//", "/../", "/./n", "/n\x00"} {
			wantErr(t, w.create(t, b, p, nil).Err, zk.ErrInvalidPath, "create", p)
		}
	}
	wantNothingSent(t, proxy)
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	client, _, proxy := setUpProxied(t)
	create := func(m builders.CreateMode, ttl time.Duration) func(*testing.T, way) error {
		return func(t *testing.T, w way) error {
			t.Helper()
			op := client.TransactionOp().Create().WithMode(m).WithTTL(ttl).ForPath("/n", nil)
			err := w.transaction(t, client.Transaction(), op).Err
			wantErr(t, err, builders.ErrBadArguments, "create", "/n")
			return w.create(t, client.Create().WithMode(m).WithTTL(ttl), "/n", nil).Err
		}
	}
	protected := func(id string) func(*testing.T, way) error {
		return func(t *testing.T, w way) error {
			t.Helper()
			return w.create(t, client.Create().WithProtectionID(id), "/n", nil).Err
		}
	}
	add := func(m builders.AddWatchMode, watcher *callbacks.Watcher) func(*testing.T, way) error {
		return func(t *testing.T, w way) error {
			t.Helper()
			return w.addWatch(t, client.Watches().Add().WithMode(m).UsingWatcher(watcher), "/n").Err
		}
	}
	remove := func(b builders.RemoveWatches) func(*testing.T, way) error {
		return func(t *testing.T, w way) error {
			t.Helper()
			return w.removeWatches(t, b, "/n").Err
		}
	}
	reconfig := func(b builders.Reconfig) func(*testing.T, way) error {
		return func(t *testing.T, w way) error {
			t.Helper()
			return w.reconfig(t, b).Err
		}
	}
	setACL := func(t *testing.T, w way) error {
		t.Helper()
		return w.setACL(t, client.SetACL(), "/n").Err
	}
	one, _ := chanWatcher()
	tests := []struct {
		name string
		op   string
		run  func(*testing.T, way) error
	}{
		{"a mode below the first", "create", create(-1, 0)},
		{"a mode above the last", "create", create(builders.PersistentSequentialWithTTL+1, 0)},
		{"no TTL", "create", create(builders.PersistentWithTTL, 0)},
		{"a TTL of less than nothing", "create", create(builders.PersistentSequentialWithTTL, -time.Second)},
		{"a TTL of less than a millisecond", "create", create(builders.PersistentWithTTL, time.Millisecond-1)},
		{"a TTL of too much", "create", create(builders.PersistentWithTTL, math.MaxInt64)},
		{"a TTL of a persistent node", "create", create(builders.Persistent, time.Second)},
		{"a TTL of a container", "create", create(builders.Container, time.Second)},
		{"a TTL of an ephemeral node", "create", create(builders.EphemeralSequential, time.Second)},
		{"a protection id that is none", "create", protected("id")},
		{"a protection id with a slash", "create", protected(strings.Repeat("/", 36))},
		{"a protection id that is too long", "create", protected("7f8f9d1c-0c46-4a6c-a9c1-cb9a66a9d3ff0")},
		{"no watcher", "addWatch", add(builders.PersistentWatch, nil)},
		{"a watch mode below the first", "addWatch", add(-1, one)},
		{"a watch mode above the last", "addWatch", add(2, one)},
		{"no watcher to remove", "removeWatches", remove(client.Watches().Remove(nil))},
		{"no watcher to remove quietly", "removeWatches", remove(client.Watches().Remove(nil).Quietly().Locally())},
		{"a watcher type below the first", "removeWatches", remove(client.Watches().Remove(one).OfType(0))},
		{"a watcher type above the last", "removeWatches", remove(client.Watches().RemoveAll().OfType(4))},
		{"no ACL", "setACL", setACL},
		{"no change", "reconfig", reconfig(client.Reconfig())},
		{
			"new members and one that joins", "reconfig",
			reconfig(client.Reconfig().Joining("server.2=a:1:2;3").WithNewMembers("server.1=b:1:2;3")),
		},
		{
			"new members and one that leaves", "reconfig",
			reconfig(client.Reconfig().WithNewMembers("server.1=b:1:2;3").Leaving("2")),
		},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					path := "/n"
					if tt.op == "reconfig" {
						path = builders.ConfigNode
					}
					wantErr(t, tt.run(t, w), builders.ErrBadArguments, tt.op, path)
				})
			}
		})
	}
	wantNothingSent(t, proxy)
}

// A request that is too large for the server is refused: the server would hang up, and on all other
// operations too.
func TestRequestsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	data := make([]byte, 2<<20)
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			wantErr(t, w.create(t, client.Create(), "/x", data).Err, builders.ErrRequestTooLarge, "create", "/x")
			b := client.Create().CreatingParentsIfNeeded().WithProtection()
			wantErr(t, w.create(t, b, "/x/y", data).Err, builders.ErrRequestTooLarge, "create", "/x/y")
			wantErr(t, w.setData(t, client.SetData(), "/n", data).Err, builders.ErrRequestTooLarge, "setData", "/n")
			op := client.TransactionOp().SetData().ForPath("/n", data[:700<<10])
			err := w.transaction(t, client.Transaction(), op, op).Err
			wantErr(t, err, builders.ErrRequestTooLarge, "multi", "")
			long := "/" + strings.Repeat("long", 300<<10)
			err = w.delete(t, client.Delete().Guaranteed(), long).Err
			wantErr(t, err, builders.ErrRequestTooLarge, "delete", long)
		})
	}
	wantNothingSent(t, proxy)
}

func TestOperationsOfAClientThatDoesNotRun(t *testing.T) {
	t.Parallel()
	client, err := framework.New("127.0.0.1:1", framework.WithNamespace("ns"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(want error) {
		t.Helper()
		for _, w := range ways {
			wantErr(t, w.create(t, client.Create().WithProtection(), "/n", nil).Err, want, "create", "/n")
			wantErr(t, w.delete(t, client.Delete().Guaranteed(), "/n").Err, want, "delete", "/n")
			wantErr(t, w.getData(t, client.GetData(), "/n").Err, want, "getData", "/n")
			op := client.TransactionOp().Check().ForPath("/n")
			wantErr(t, w.transaction(t, client.Transaction(), op).Err, want, "multi", "")
			watcher, _ := chanWatcher()
			b := client.Watches().Remove(watcher).Guaranteed()
			wantErr(t, w.removeWatches(t, b, "/n").Err, want, "removeWatches", "/n")
			wantErr(t, w.removeWatches(t, b.Locally(), "/n").Err, want, "removeWatches", "/n")
			wantErr(t, w.getConfig(t, client.GetConfig()).Err, want, "getConfig", builders.ConfigNode)
		}
		_, err := client.Create().Submit(testenv.Context(t), "/n", nil).Wait(testenv.Context(t))
		wantErr(t, err, want, "create", "/n")
	}
	check(framework.ErrNotStarted)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	check(framework.ErrClosed)
}

// A builder may be kept and branched: no step changes the one that it starts from.
func TestBuildersAreValues(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t, framework.WithDefaultData([]byte("default")))
	ctx := testenv.Context(t)
	var stat zk.Stat
	base := client.Create()
	_ = base.WithMode(builders.EphemeralSequential).WithProtection().Compressed().StoringStatIn(&stat).
		WithACL(zk.WorldACL(zk.PermRead)...).OrSetDataWithVersion(7).Idempotent().CreatingParentsIfNeeded().
		WithTTL(time.Hour).WithProtectionID("id").InBackground(nil)
	for _, p := range []string{"/a", "/b"} {
		name, err := base.ForPath(ctx, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, made := tr.read(name)
		equal(t, "name", name, p)
		equal(t, "data", data, "default")
		equal(t, "owner", made.EphemeralOwner, 0)
		equal(t, "ACL", tr.acl(p), builders.OpenACL)
	}
	equal(t, "stat", stat, zk.Stat{})
	if _, err := base.ForPath(ctx, "/a", nil); err == nil {
		t.Error("it sets the data")
	}
	if _, err := base.ForPath(ctx, "/x/y", nil); err == nil {
		t.Error("it makes parents")
	}

	del := client.Delete()
	_ = del.Quietly().DeletingChildrenIfNeeded().WithVersion(7)
	tr.make("/a/child", "")
	wantErr(t, del.ForPath(ctx, "/a"), zk.ErrNotEmpty, "delete", "/a")
	wantErr(t, del.ForPath(ctx, "/none"), zk.ErrNoNode, "delete", "/none")
	if err := del.ForPath(ctx, "/b"); err != nil {
		t.Error(err)
	}
	set := client.SetData()
	_ = set.WithVersion(7).Compressed().Idempotent()
	if _, err := set.ForPath(ctx, "/a", []byte("set")); err != nil {
		t.Error(err)
	}
	data, _ := tr.read("/a")
	equal(t, "data", data, "set")
	get := client.GetData()
	watcher, events := chanWatcher()
	_ = get.Decompressed().UsingWatcher(watcher).StoringStatIn(&stat)
	if got, err := get.ForPath(ctx, "/a"); err != nil || string(got) != "set" {
		t.Errorf("data is %q, %v", got, err)
	}
	equal(t, "stat", stat, zk.Stat{})
	tr.remove("/a/child")
	tr.remove("/a")
	wantNoEvents(t, client, events)
}

func TestBuildersDoNotKeepTheSlicesOfTheirCaller(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	tr.make("/n", "")
	acl := append([]zk.ACL{}, builders.OpenACL...)
	create, parents := client.Create().WithACL(acl...), client.Create().WithACLAppliedToParents(acl...)
	exists := client.CheckExists().WithACL(acl...).CreatingParentsIfNeeded()
	set := client.SetACL().WithACL(acl...)
	op := client.TransactionOp().Create().WithACL(acl...)
	acl[0] = zk.ACL{Perms: zk.PermAll, Scheme: "nonsense"}
	if _, err := create.ForPath(ctx, "/a", nil); err != nil {
		t.Error(err)
	}
	if _, err := parents.CreatingParentsIfNeeded().ForPath(ctx, "/b/c", nil); err != nil {
		t.Error(err)
	}
	if _, err := exists.ForPath(ctx, "/d/e"); err != nil {
		t.Error(err)
	}
	if _, err := set.ForPath(ctx, "/n"); err != nil {
		t.Error(err)
	}
	if _, err := client.Transaction().ForOperations(ctx, op.ForPath("/f", nil)); err != nil {
		t.Error(err)
	}
}

func TestBuildersMayBeSharedByGoroutines(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	create := client.Create().CreatingParentsIfNeeded().WithProtection().
		WithACLAppliedToParents(builders.OpenACL...)
	set, get, del := client.SetData(), client.GetData(), client.Delete().DeletingChildrenIfNeeded()
	inBackground := create.InBackground(nil)
	op := client.TransactionOp().Create()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				path := fmt.Sprintf("/%d/%d", i, j)
				name, err := create.ForPath(ctx, path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := set.ForPath(ctx, name, []byte(path)); err != nil {
					t.Error(err)
				}
				if data, err := get.ForPath(ctx, name); err != nil || string(data) != path {
					t.Errorf("data is %q, %v, want %s", data, err, path)
				}
				if err := inBackground.ForPath(ctx, path, nil); err != nil {
					t.Error(err)
				}
				if _, err := client.Transaction().ForOperations(ctx, op.ForPath(path, nil)); err != nil {
					t.Error(err)
				}
			}
			if err := del.ForPath(ctx, fmt.Sprintf("/%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "nodes", tr.children("/"), []string{})
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	client, _, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(2, time.Millisecond)))
	cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.CutBefore})
	defer cut.Remove()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			err := w.getData(t, client.GetData(), "/n").Err
			wantErr(t, err, framework.ErrConnectionLoss, "getData", "/n")
			if want := "curator: getData /n (3 attempts): connection loss"; err.Error() != want {
				t.Errorf("error is %q, want %q", err, want)
			}
		})
	}
}
