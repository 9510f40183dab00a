package builders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// trial is one run of an operation in a directory of its own, with the connection cut at one of its requests.
type trial struct {
	*testing.T
	w      way
	client *framework.Client
	tr     tree
	dir    string // for the client
	full   string // in the tree
	cut    *curatortest.Injection
	after  bool // the server has carried out the request
	stat   zk.Stat
}

// lost checks an error that only a lost answer explains: the operation was carried out, tried again, and then
// found its own work. That is what callers without a protection get.
func (t *trial) lost(err, foundOwnWork error) {
	t.Helper()
	if err == nil {
		return
	}
	if !t.after || !errors.Is(err, foundOwnWork) || t.cut.Wait(testenv.Context(t)) != nil {
		t.Errorf("error is %v", err)
	}
}

func (t *trial) wantNodes(want ...string) {
	t.Helper()
	equal(t, "nodes", t.tr.children(t.full), append([]string{}, want...))
}

// wantOne checks that there is exactly one node, the one that the caller got, with the stat that it
// got.
func (t *trial) wantOne(ev callbacks.Event, dir string) {
	t.Helper()
	succeed(t, ev)
	nodes := t.tr.children(t.full + dir)
	if len(nodes) != 1 || ev.Name != t.dir+dir+"/"+nodes[0] {
		t.Errorf("nodes are %q, the caller got %q", nodes, ev.Name)
		return
	}
	_, stat := t.tr.read(t.full + dir + "/" + nodes[0])
	equal(t, "stored stat", t.stat, stat)
}

// cutEverywhere runs an operation again and again, with the connection cut before or after the server carries
// out its first request, its second, and so on, until a run has no request left to cut at. Each run has so
// many cuts in a row.
func cutEverywhere(t *testing.T, cuts int, there []string, run func(t *trial)) {
	t.Helper()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, framework.WithNamespace("ns"),
				framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)))
			succeed(t, w.exists(t, client.CheckExists(), "/")) // makes the namespace
			for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
				for k, hit := 0, true; hit && !t.Failed(); k++ {
					t.Run(fmt.Sprintf("%v %d", action, k), func(t *testing.T) {
						dir := fmt.Sprintf("/%v-%d", action, k)
						tr := tr
						tr.tb = t
						tr.make("/ns"+dir, "")
						for _, p := range there {
							tr.make("/ns"+dir+p, "before")
						}
						succeed(t, w.exists(t, client.CheckExists(), dir)) // it knows them: none is newer than its request
						tl := &trial{T: t, w: w, client: client, tr: tr, dir: dir, full: "/ns" + dir}
						tl.after = action == curatortest.CutAfter
						tl.cut = proxy.Faults().Add(curatortest.Rule{Action: action, Skip: k, Count: cuts, MayMiss: k > 0})
						if err := tl.cut.Err(); err != nil {
							t.Fatal(err)
						}
						run(tl)
						tl.cut.Remove()
						succeed(t, foreground.sync(t, client.Sync(), "/")) // what was cut stands again
						hit = tl.cut.Hits() > 0
					})
				}
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			tr.tb = t
			tr.wantNoEphemerals("/ns")
		})
	}
}

// wantNoEphemerals checks that no session has left a node at p or below.
func (t tree) wantNoEphemerals(p string) {
	t.tb.Helper()
	if _, stat := t.read(p); stat.EphemeralOwner != 0 {
		t.tb.Errorf("%s is left by session %x", p, stat.EphemeralOwner)
	}
	for _, name := range t.children(p) {
		t.wantNoEphemerals(p + "/" + name)
	}
}

// CURATOR-584, "idempotent".
func TestCreateWithLostConnections(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		cutEverywhere(t, 1, nil, func(t *trial) {
			ev := t.w.create(t, t.client.Create(), t.dir+"/n", []byte("data"))
			t.lost(ev.Err, zk.ErrNodeExists)
			t.wantNodes("n")
		})
	})
	t.Run("with parents", func(t *testing.T) {
		cutEverywhere(t, 1, nil, func(t *trial) {
			b := t.client.Create().CreatingParentsIfNeeded()
			ev := t.w.create(t, b, t.dir+"/a/b/c/n", []byte("data"))
			t.lost(ev.Err, zk.ErrNodeExists)
			if !t.tr.exists(t.full + "/a/b/c/n") {
				t.Error("there is no node")
			}
		})
	})
	t.Run("sequential", func(t *testing.T) {
		cutEverywhere(t, 1, nil, func(t *trial) {
			b := t.client.Create().WithMode(builders.EphemeralSequential).StoringStatIn(&t.stat)
			ev := succeed(t, t.w.create(t, b, t.dir+"/n", []byte("data")))
			nodes := t.tr.children(t.full) // without protection there may be two, of which the caller knows the last
			if len(nodes) > 2 || ev.Name != t.dir+"/"+nodes[len(nodes)-1] {
				t.Errorf("nodes are %q, the caller got %q", nodes, ev.Name)
			}
			_, stat := t.tr.read(t.full + "/" + nodes[len(nodes)-1])
			equal(t, "stored stat", t.stat, stat)
		})
	})
	t.Run("idempotent", func(t *testing.T) {
		cutEverywhere(t, 1, nil, func(t *trial) {
			b := t.client.Create().Idempotent().CreatingParentsIfNeeded().StoringStatIn(&t.stat)
			t.wantOne(t.w.create(t, b, t.dir+"/a/n", []byte("data")), "/a")
		})
	})
	t.Run("or setData", func(t *testing.T) {
		cutEverywhere(t, 1, []string{"/there"}, func(t *trial) {
			b := t.client.Create().OrSetData().CreatingParentsIfNeeded().StoringStatIn(&t.stat)
			t.wantOne(t.w.create(t, b, t.dir+"/there/n", []byte("data")), "/there")
			ev := succeed(t, t.w.create(t, b, t.dir+"/there", []byte("data")))
			equal(t, "name", ev.Name, t.dir+"/there")
			data, stat := t.tr.read(t.full + "/there")
			equal(t, "data", data, "data")
			equal(t, "stored stat", t.stat, stat)
		})
	})
}

// CURATOR-203: also in the background a node that was found is reported with its whole path.
func TestProtectedCreateWithLostConnectionsLeavesOneNode(t *testing.T) {
	t.Parallel()
	for _, mode := range []builders.CreateMode{
		builders.Persistent, builders.Ephemeral, builders.PersistentSequential, builders.EphemeralSequential,
		builders.Container,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			cutEverywhere(t, 1, nil, func(t *trial) {
				b := t.client.Create().WithProtection().WithMode(mode).CreatingParentsIfNeeded()
				ev := t.w.create(t, b.StoringStatIn(&t.stat), t.dir+"/a/n-", nil)
				t.wantOne(ev, "/a")
				if !zkpath.IsProtected(t.tr.children(t.full + "/a")[0]) {
					t.Error("the node is not protected")
				}
			})
		})
	}
}

// CURATOR-45, CURATOR-79: when the retries are used up, a node that was created all the same is removed.
func TestProtectedCreateThatIsGivenUpLeavesNoNode(t *testing.T) {
	t.Parallel()
	for _, mode := range []builders.CreateMode{builders.Persistent, builders.EphemeralSequential} {
		t.Run(mode.String(), func(t *testing.T) {
			cutEverywhere(t, 2, nil, func(t *trial) {
				b := t.client.Create().WithProtection().WithMode(mode).CreatingParentsIfNeeded()
				ev := t.w.create(t, b.StoringStatIn(&t.stat), t.dir+"/a/n-", nil)
				if ev.Err == nil {
					t.wantOne(ev, "/a")
					return
				}
				wantErr(t, ev.Err, framework.ErrConnectionLoss, "create", t.dir+"/a/n-")
				testenv.Eventually(t, func() bool { return len(t.tr.children(t.full+"/a")) == 0 }, "no node is left")
			})
		})
	}
}

// asked is a policy that counts how often a failure is asked about.
type countedPolicy struct {
	retry.Policy
	times *atomic.Int32
}

func (a countedPolicy) NewBackOff() backoff.BackOff {
	return countedBackOff{a.Policy.NewBackOff(), a.times}
}

type countedBackOff struct {
	backoff.BackOff
	times *atomic.Int32
}

func (a countedBackOff) NextBackOff() time.Duration {
	a.times.Add(1)
	return a.BackOff.NextBackOff()
}

// In Java (commits 9b68e19a, 737d2aa1) what looks for the node of a protected create that was given up tried again at
// once, and in itself, as long as the server was down. It waits for the server, and asks once.
func TestCleanUpOfAProtectedCreateWaitsForTheServer(t *testing.T) {
	for _, w := range ways {
		for _, ns := range []string{"", "ns"} {
			t.Run(fmt.Sprintf("%s, namespace %q", w, ns), func(t *testing.T) {
				t.Parallel()
				policy := countedPolicy{retry.NTimes(1, 0), new(atomic.Int32)} // a second failure is the end
				client, tr, proxy := setUpProxied(t,
					append(impatient(), framework.WithNamespace(ns), framework.WithRetryPolicy(policy))...)
				succeed(t, w.create(t, client.Create(), "/a", nil))
				full := map[string]string{"": "/a", "ns": "/ns/a"}[ns]
				restore := proxy.Faults().RefuseConnects()
				proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
				b := client.Create().WithProtection().WithMode(builders.PersistentSequential)
				wantErr(t, w.create(t, b, "/a/n-", nil).Err, framework.ErrConnectionLoss, "create", "/a/n-")
				equal(t, "nodes", len(tr.children(full)), 1)
				for range 2 { // meanwhile others come and go
					err := w.exists(t, client.CheckExists(), "/a").Err
					wantErr(t, err, framework.ErrConnectionLoss, "exists", "/a")
				}
				equal(t, "failures of those three", policy.times.Load(), 3*2)
				proxy.Faults().ResetTrace()
				restore()
				testenv.Eventually(t, func() bool { return len(tr.children(full)) == 0 }, "no node is left")
				succeed(t, w.exists(t, client.CheckExists(), "/a")) // behind whatever else would be sent
				requests := map[string]int{}
				for _, e := range proxy.Faults().Trace() {
					if !e.Reply && (e.Op == "multi" || e.Op == "getChildren2" || e.Op == "delete") {
						requests[e.Op]++
					}
				}
				equal(t, "requests", requests, map[string]int{"multi": 1, "getChildren2": 1, "delete": 1})
			})
		}
	}
}

// CURATOR-584, "quietly".
func TestDeleteWithLostConnections(t *testing.T) {
	t.Parallel()
	there := []string{"/n"}
	t.Run("plain", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			t.lost(t.w.delete(t, t.client.Delete(), t.dir+"/n").Err, zk.ErrNoNode)
			t.wantNodes()
		})
	})
	t.Run("guaranteed", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			t.lost(t.w.delete(t, t.client.Delete().Guaranteed(), t.dir+"/n").Err, zk.ErrNoNode)
			t.wantNodes()
		})
	})
	t.Run("of a version", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			t.lost(t.w.delete(t, t.client.Delete().WithVersion(0), t.dir+"/n").Err, zk.ErrNoNode)
			t.wantNodes()
		})
	})
	t.Run("quietly", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			succeed(t, t.w.delete(t, t.client.Delete().Quietly(), t.dir+"/n"))
			t.wantNodes()
		})
	})
	t.Run("with children", func(t *testing.T) {
		cutEverywhere(t, 1, []string{"/n", "/n/a", "/n/a/b", "/n/c"}, func(t *trial) {
			b := t.client.Delete().DeletingChildrenIfNeeded()
			t.lost(t.w.delete(t, b, t.dir+"/n").Err, zk.ErrNoNode)
			t.wantNodes()
		})
	})
}

// CURATOR-203: what a guaranteed delete could not do before it was given up is done in the background.
func TestGuaranteedDeleteThatIsGivenUpGoesOn(t *testing.T) {
	t.Parallel()
	cutEverywhere(t, 2, []string{"/n", "/n/a", "/n/a/b"}, func(t *trial) {
		ev := t.w.delete(t, t.client.Delete().Guaranteed().DeletingChildrenIfNeeded(), t.dir+"/n")
		if ev.Err != nil {
			wantErr(t, ev.Err, framework.ErrConnectionLoss, "delete", t.dir+"/n")
		}
		t.tr.awaitGone(t.full + "/n")
	})
}

// CURATOR-584, "idempotent".
func TestSetDataWithLostConnections(t *testing.T) {
	t.Parallel()
	there := []string{"/n"}
	check := func(t *trial, ev callbacks.Event, maxVersion int32) {
		t.Helper()
		data, stat := t.tr.read(t.full + "/n")
		equal(t, "data", data, "data")
		if stat.Version > maxVersion {
			t.Errorf("version is %d", stat.Version)
		}
		if ev.Err == nil {
			equal(t, "stat", ev.Stat, &stat)
		}
	}
	t.Run("plain", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			check(t, succeed(t, t.w.setData(t, t.client.SetData(), t.dir+"/n", []byte("data"))), 2)
		})
	})
	t.Run("of a version", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			ev := t.w.setData(t, t.client.SetData().WithVersion(0), t.dir+"/n", []byte("data"))
			t.lost(ev.Err, zk.ErrBadVersion)
			check(t, ev, 1)
		})
	})
	t.Run("idempotent", func(t *testing.T) {
		cutEverywhere(t, 1, there, func(t *trial) {
			b := t.client.SetData().Idempotent().WithVersion(0)
			check(t, succeed(t, t.w.setData(t, b, t.dir+"/n", []byte("data"))), 1)
		})
	})
}

func TestTransactionWithLostConnections(t *testing.T) {
	t.Parallel()
	cutEverywhere(t, 1, []string{"/n"}, func(t *trial) {
		op := t.client.TransactionOp()
		ev := t.w.transaction(t, t.client.Transaction(),
			op.Check().WithVersion(0).ForPath(t.dir+"/n"),
			op.SetData().ForPath(t.dir+"/n", []byte("data")),
			op.Create().ForPath(t.dir+"/made", nil))
		t.lost(ev.Err, zk.ErrBadVersion) // of the check, which guards against doing it twice
		if len(ev.Results) != 3 {
			t.Errorf("%d results", len(ev.Results))
		}
		t.wantNodes("made", "n")
		_, stat := t.tr.read(t.full + "/n")
		equal(t, "version", stat.Version, 1)
	})
}

func TestReadsWithLostConnections(t *testing.T) {
	t.Parallel()
	cutEverywhere(t, 1, []string{"/n", "/n/child"}, func(t *trial) {
		n, w, client := t.dir+"/n", t.w, t.client
		watcher, events := chanWatcher()
		ev := succeed(t, w.exists(t, client.CheckExists().CreatingParentsIfNeeded(), t.dir+"/a/b/c"))
		if ev.Stat != nil || !t.tr.exists(t.full+"/a/b") {
			t.Error("no parents are made")
		}
		ev = succeed(t, w.exists(t, client.CheckExists().UsingWatcher(watcher), n))
		if ev.Stat == nil {
			t.Error("there is no node")
		}
		ev = succeed(t, w.getData(t, client.GetData().UsingWatcher(watcher), n))
		equal(t, "data", string(ev.Data), "before")
		ev = succeed(t, w.getChildren(t, client.GetChildren().UsingWatcher(watcher), n))
		equal(t, "children", ev.Children, []string{"child"})
		equal(t, "ACL", succeed(t, w.getACL(t, client.GetACL(), n)).ACL, builders.OpenACL)
		succeed(t, w.setACL(t, client.SetACL().WithACL(builders.OpenACL...), n))
		succeed(t, w.sync(t, client.Sync(), n))
		succeed(t, w.getConfig(t, client.GetConfig()))
		added, addedEvents := chanWatcher()
		// Not of n: servers before 3.9 keep only one kind of watch a path.
		succeed(t, w.addWatch(t, client.Watches().Add().UsingWatcher(added), n+"/child"))

		t.tr.make(t.full+"/n/other", "")
		wantEvents(t, events, zk.Event{Type: zk.EventNodeChildrenChanged, Path: n})
		t.tr.make(t.full+"/n/child/other", "")
		wantEvents(t, addedEvents, zk.Event{Type: zk.EventNodeCreated, Path: n + "/child/other"})
		succeed(t, w.removeWatches(t, client.Watches().Remove(watcher), n))
		succeed(t, w.removeWatches(t, client.Watches().Remove(added), n+"/child"))
		if watched := t.tr.watches(); slices.Contains(watched, t.full+"/n") {
			t.Errorf("still watched: %q", watched)
		}
	})
}

// held begins an operation with the reply to a request, or the request itself, on its way, gives it up and
// returns its error.
func held(
	t *testing.T, proxy *curatortest.Proxy, rule curatortest.Rule, run func(ctx context.Context) error,
) (in *curatortest.Injection, err error) {
	t.Helper()
	in = proxy.Faults().Add(rule)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	errs := make(chan error, 1)
	go func() { errs <- run(ctx) }()
	if err := in.Wait(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	return in, receive(t, errs)
}

// CURATOR-79.
func TestProtectedCreateWhoseContextEndsLeavesNoNode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		rule  curatortest.Rule
		after func(*curatortest.Proxy, *curatortest.Injection) // what happens when the caller has gone
	}{
		{
			"the answer comes",
			curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply},
			func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() },
		},
		{
			"the answer is lost",
			curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply},
			func(p *curatortest.Proxy, _ *curatortest.Injection) { p.Faults().CutAll() },
		},
		{
			"the request comes late",
			curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldRequest},
			func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() },
		},
		{
			"the request is lost",
			curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldRequest},
			func(p *curatortest.Proxy, _ *curatortest.Injection) { p.Faults().CutAll() },
		},
		{
			"while the parents are made",
			curatortest.Rule{Ops: []string{"exists"}, Action: curatortest.HoldReply},
			func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() },
		},
		{
			"while it is looked for",
			curatortest.Rule{Ops: []string{"getChildren2"}, Action: curatortest.HoldReply},
			func(_ *curatortest.Proxy, in *curatortest.Injection) { in.Release() },
		},
	}
	for _, ns := range []string{"", "ns"} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, namespace %q", tt.name, ns), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t, framework.WithNamespace(ns))
				ctx := testenv.Context(t)
				prefix := map[string]string{"": "", "ns": "/ns"}[ns]
				succeed(t, foreground.exists(t, client.CheckExists(), "/"))
				path, b := "/n-", client.Create().WithProtection().WithMode(builders.PersistentSequential)
				switch tt.rule.Ops[0] {
				case "exists":
					path, b = "/a/n-", b.CreatingParentsIfNeeded()
				case "getChildren2":
					lose := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
					defer lose.Remove()
				}
				in, err := held(t, proxy, tt.rule, func(ctx context.Context) error {
					_, err := b.ForPath(ctx, path, nil)
					return err
				})
				wantErr(t, err, context.Canceled, "create", path)
				tt.after(proxy, in)
				in.Remove()
				testenv.Eventually(t, func() bool {
					dir := zkpath.Join(prefix, zkpath.Parent(path))
					nodes := tr.children(dir)
					return len(nodes) == 0 || dir == "/" && slices.Equal(nodes, []string{"a"})
				}, "no node is left")
				// A late request is answered ahead of the first sync, and what that leads to ahead of the second.
				for range 2 {
					if err := client.Sync().ForPath(ctx, "/"); err != nil {
						t.Fatal(err)
					}
				}
				for _, name := range tr.children(zkpath.Join(prefix, zkpath.Parent(path))) {
					t.Errorf("node %s is left", name)
				}
			})
		}
	}
}

// An operation whose context has ended before it was begun sends nothing.
func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	_, err := client.Create().WithProtection().ForPath(ctx, "/x", nil)
	wantErr(t, err, context.Canceled, "create", "/x")
	wantErr(t, client.Delete().ForPath(ctx, "/n"), context.Canceled, "delete", "/n")
	_, err = client.GetData().ForPath(ctx, "/n")
	wantErr(t, err, context.Canceled, "getData", "/n")
	wantNothingSent(t, proxy)

	// But for what is guaranteed: the watcher gets no further events, the delete goes on.
	watcher, events := chanWatcher()
	succeed(t, foreground.exists(t, client.CheckExists().UsingWatcher(watcher), "/n"))
	err = client.Watches().Remove(watcher).Guaranteed().ForPath(ctx, "/n")
	wantErr(t, err, context.Canceled, "removeWatches", "/n")
	wantErr(t, client.Delete().Guaranteed().ForPath(ctx, "/n"), context.Canceled, "delete", "/n")
	tr.awaitGone("/n")
	wantNoEvents(t, client, events)

	// In the background the context only carries values.
	ev := await(t, callbacks.Create, "/x", func(cb callbacks.BackgroundCallback) error {
		return client.Create().InBackground(cb).ForPath(ctx, "/x", nil)
	})
	succeed(t, ev)
}

// CURATOR-203: a guaranteed delete goes on when its context ends.
func TestGuaranteedDeleteWhoseContextEndsGoesOn(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"", "ns"} {
		for _, action := range []curatortest.Action{curatortest.HoldReply, curatortest.HoldRequest} {
			for _, cut := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, cut %t, namespace %q", action, cut, ns), func(t *testing.T) {
					client, tr, proxy := setUpProxied(t, framework.WithNamespace(ns))
					succeed(t, foreground.create(t, client.Create(), "/n", nil))
					rule := curatortest.Rule{Ops: []string{"delete"}, Action: action, Count: 1}
					in, err := held(t, proxy, rule, func(ctx context.Context) error {
						return client.Delete().Guaranteed().ForPath(ctx, "/n")
					})
					wantErr(t, err, context.Canceled, "delete", "/n")
					if cut {
						proxy.Faults().CutAll()
					}
					in.Remove()
					tr.awaitGone(map[string]string{"": "/n", "ns": "/ns/n"}[ns])
				})
			}
		}
	}
}

// CURATOR-498: a node of an earlier session is about to vanish and must not be taken for ours. It is removed,
// also in a namespace.
func TestProtectedCreateDoesNotAdoptTheNodeOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.EphemeralSequential} {
					t.Run(fmt.Sprintf("%v, namespace %q", mode, ns), func(t *testing.T) {
						client, tr, proxy := setUpProxied(t, framework.WithNamespace(ns),
							framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
						prefix := map[string]string{"": "", "ns": "/ns"}[ns]
						succeed(t, w.create(t, client.Create(), "/a", nil))
						earlier := client.SessionID()
						cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
						restore := proxy.Faults().RefuseConnects()
						results := make(chan callbacks.Event, 1)
						var stat zk.Stat
						go func() {
							b := client.Create().WithProtection().WithMode(mode).StoringStatIn(&stat)
							results <- w.create(t, b, "/a/n-", nil)
						}()
						if err := cut.Wait(testenv.Context(t)); err != nil {
							t.Fatal(err)
						}
						equal(t, "nodes of the earlier session", len(tr.children(prefix+"/a")), 1)
						if err := client.Reset(); err != nil { // whose nodes remain until its timeout
							t.Fatal(err)
						}
						restore()
						name := succeed(t, receive(t, results)).Name
						if client.SessionID() == earlier {
							t.Fatal("the session is still the same")
						}
						equal(t, "owner", stat.EphemeralOwner, client.SessionID())
						testenv.Eventually(t, func() bool {
							nodes := tr.children(prefix + "/a")
							return len(nodes) == 1 && name == "/a/"+nodes[0]
						}, "only the new node is left")
					})
				}
			}
		})
	}
}

// A persistent node is ours whichever session has created it.
func TestProtectedCreateAdoptsAPersistentNodeOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
			cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
			restore := proxy.Faults().RefuseConnects()
			results := make(chan callbacks.Event, 1)
			go func() {
				b := client.Create().WithProtection().WithMode(builders.PersistentSequential)
				results <- w.create(t, b, "/n-", nil)
			}()
			if err := cut.Wait(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			nodes := tr.children("/")
			if err := client.Reset(); err != nil {
				t.Fatal(err)
			}
			restore()
			equal(t, "name", []string{succeed(t, receive(t, results)).Name}, []string{"/" + nodes[0]})
			equal(t, "nodes", tr.children("/"), nodes)
		})
	}
}

// CURATOR-42: that there is no node is the end of a guaranteed delete.
func TestGuaranteedDeleteOfNothingIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, _, proxy := setUpProxied(t)
			wantErr(t, w.delete(t, client.Delete().Guaranteed(), "/n").Err, zk.ErrNoNode, "delete", "/n")
			succeed(t, w.sync(t, client.Sync(), "/")) // behind whatever else would be sent
			var requests int
			for _, e := range proxy.Faults().Trace() {
				if e.Op == "delete" && !e.Reply {
					requests++
				}
			}
			equal(t, "requests", requests, 1)
		})
	}
}

// A guaranteed delete that never found a connection is done when there is one.
func TestGuaranteedDeleteWithoutAConnectionGoesOn(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for _, ns := range []string{"", "ns"} {
			t.Run(fmt.Sprintf("%s, namespace %q", w, ns), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t, append(impatient(), framework.WithNamespace(ns))...)
				view := client.UsingNamespace("other")
				for _, name := range []string{"/n", "/m"} {
					succeed(t, w.create(t, client.Create(), name, nil))
					succeed(t, w.create(t, view.Create(), name, nil))
				}
				connect := disconnect(t, client, proxy)
				for _, c := range []*framework.Client{client, view} {
					err := w.delete(t, c.Delete().Guaranteed(), "/n").Err
					wantErr(t, err, framework.ErrConnectionLoss, "delete", "/n")
					ctx, cancel := context.WithTimeout(testenv.Context(t), time.Millisecond)
					err = c.Delete().Guaranteed().ForPath(ctx, "/m")
					cancel()
					if !errors.Is(err, framework.ErrConnectionLoss) { // the wait for a connection is short, too
						wantErr(t, err, context.DeadlineExceeded, "delete", "/m")
					}
				}
				connect()
				for _, prefix := range []string{map[string]string{"": "", "ns": "/ns"}[ns], "/other"} {
					tr.awaitGone(prefix + "/n")
					tr.awaitGone(prefix + "/m")
				}
			})
		}
	}
}

// A guaranteed delete whose answer was lost is done in the session that follows, also in a namespace.
func TestGuaranteedDeleteGoesOnInTheNextSession(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				opts := append(impatient(), framework.WithNamespace(ns))
				client, tr, proxy := setUpProxied(t, opts...)
				view := client.UsingNamespace("other")
				succeed(t, w.create(t, client.Create(), "/n", nil))
				succeed(t, w.create(t, view.Create(), "/n", nil))
				for prefix, c := range map[string]*framework.Client{
					map[string]string{"": "", "ns": "/ns"}[ns]: client, "/other": view,
				} {
					cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Action: curatortest.CutBefore, Count: 1})
					restore := proxy.Faults().RefuseConnects()
					err := w.delete(t, c.Delete().Guaranteed(), "/n").Err
					wantErr(t, err, framework.ErrConnectionLoss, "delete", "/n")
					if err := cut.Wait(testenv.Context(t)); err != nil {
						t.Fatal(err)
					}
					if err := client.Reset(); err != nil {
						t.Fatal(err)
					}
					restore()
					tr.awaitGone(prefix + "/n")
					if err := client.BlockUntilConnected(testenv.Context(t)); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
