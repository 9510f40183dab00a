package builders_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// What others do between two requests of an operation.
func TestOthersInterfere(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		there     []string
		build     func(builders.Create) builders.Create
		held      curatortest.Rule // the request that they are ahead of
		lose      bool             // the answer to the first create is lost
		interfere func(tr tree)
		want      error
	}{
		{
			name:      "the node is gone before its data is set",
			there:     []string{"/a", "/a/n"},
			build:     builders.Create.OrSetData,
			held:      curatortest.Rule{Ops: []string{"setData"}},
			interfere: func(tr tree) { tr.remove("/a/n") },
		},
		{
			name:      "the node is gone before it is compared",
			there:     []string{"/a", "/a/n"},
			build:     builders.Create.Idempotent,
			held:      curatortest.Rule{Ops: []string{"getData"}},
			interfere: func(tr tree) { tr.remove("/a/n") },
		},
		{
			name:      "a parent is gone before the node is created below it",
			build:     builders.Create.CreatingParentsIfNeeded,
			held:      curatortest.Rule{Ops: []string{"create2"}, Path: "/**/a/n", Skip: 1},
			interfere: func(tr tree) { tr.remove("/a") },
		},
		{
			name:      "a parent is there before it is created",
			build:     builders.Create.CreatingParentsIfNeeded,
			held:      curatortest.Rule{Ops: []string{"create2"}, Path: "/**/a"},
			interfere: func(tr tree) { tr.make("/a", "") },
		},
		{
			name:      "the node is there before it is created",
			build:     builders.Create.CreatingParentsIfNeeded,
			held:      curatortest.Rule{Ops: []string{"create2"}, Path: "/**/a/n", Skip: 1},
			interfere: func(tr tree) { tr.make("/a/n", "") },
			want:      zk.ErrNodeExists,
		},
		{
			name: "the node is there before it is created, and its data is set",
			build: func(b builders.Create) builders.Create {
				return b.CreatingParentsIfNeeded().OrSetData()
			},
			held:      curatortest.Rule{Ops: []string{"create2"}, Path: "/**/a/n", Skip: 1},
			interfere: func(tr tree) { tr.make("/a/n", "") },
		},
		{
			name:  "the protected node is gone before it is adopted",
			there: []string{"/a"},
			build: builders.Create.WithProtection,
			held:  curatortest.Rule{Ops: []string{"exists"}},
			lose:  true,
			interfere: func(tr tree) {
				for _, name := range tr.children("/a") {
					tr.remove("/a/" + name)
				}
			},
		},
		{
			name:      "the parent is gone before the protected node is looked for",
			there:     []string{"/a"},
			build:     func(b builders.Create) builders.Create { return b.WithProtection().CreatingParentsIfNeeded() },
			held:      curatortest.Rule{Ops: []string{"getChildren2"}},
			lose:      true,
			interfere: func(tr tree) { tr.remove("/a/" + tr.children("/a")[0]); tr.remove("/a") },
		},
	}
	for _, w := range ways {
		for _, tt := range tests {
			t.Run(tt.name+" in the "+string(w), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t)
				for _, p := range tt.there {
					tr.make(p, "")
				}
				if tt.lose {
					proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
				}
				tt.held.Action, tt.held.Count = curatortest.HoldRequest, 1
				held := proxy.Faults().Add(tt.held)
				results := make(chan callbacks.Event, 1)
				go func() { results <- w.create(t, tt.build(client.Create()), "/a/n", []byte("data")) }()
				if err := held.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				tt.interfere(tr)
				held.Release()
				ev := receive(t, results)
				if tt.want != nil {
					wantErr(t, ev.Err, tt.want, "create", "/a/n")
					return
				}
				succeed(t, ev)
				equal(t, "nodes", tr.children("/a"), []string{ev.Name[len("/a/"):]})
				data, _ := tr.read(ev.Name)
				equal(t, "data", data, "data")
			})
		}
	}
}

// The server that a client comes back to may not have heard yet of what another one did for it: a node of
// ours is looked for behind a transaction, else it would be created twice, or left behind.
func TestProtectedNodeIsLookedForBehindATransaction(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			once := framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)) // as long as it takes to connect
			client, tr, proxy := setUpProxied(t, once)
			tr.make("/a", "")
			b := client.Create().WithProtection().WithMode(builders.EphemeralSequential)
			wantOrder := func() {
				t.Helper()
				var last string
				var found bool
				for _, e := range proxy.Faults().Trace() {
					if e.Reply || e.Op == "connect" {
						continue
					}
					if e.Op == "getChildren2" {
						found = true
						equal(t, "request ahead of the search", last, "multi "+e.Path)
					}
					last = e.Op + " " + e.Path
				}
				if !found {
					t.Error("nothing is looked for")
				}
				proxy.Faults().ResetTrace()
			}
			proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
			succeed(t, w.create(t, b, "/a/n-", nil)) // found
			wantOrder()

			proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
			cut := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"multi", "getChildren2"}, Action: curatortest.CutBefore, Count: 1,
			})
			err := w.create(t, b, "/a/n-", nil).Err // given up
			wantErr(t, err, framework.ErrConnectionLoss, "create", "/a/n-")
			if err := cut.Wait(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, func() bool { return len(tr.children("/a")) == 1 }, "the other node is removed")
			wantOrder()
		})
	}
}

// A node that was there before is not removed because a caller gives up, be its name protected or not.
func TestProtectedCreateWhoseContextEndsLeavesWhatWasThere(t *testing.T) {
	t.Parallel()
	id := zkpath.NewProtectionID()
	for name, b := range map[string]func(builders.Create) builders.Create{
		"setData": builders.Create.OrSetData,
		"getData": builders.Create.Idempotent,
	} {
		t.Run(name, func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			path := zkpath.ProtectPath(id, "/n")
			tr.make(path, "data")
			in, err := held(t, proxy, curatortest.Rule{Ops: []string{name}, Action: curatortest.HoldReply},
				func(ctx context.Context) error {
					_, err := b(client.Create()).WithProtectionID(id).ForPath(ctx, "/n", []byte("data"))
					return err
				})
			wantErr(t, err, context.Canceled, "create", "/n")
			in.Remove()
			for range 2 {
				if err := client.Sync().ForPath(testenv.Context(t), "/"); err != nil {
					t.Fatal(err)
				}
			}
			if !tr.exists(path) {
				t.Error("it is gone")
			}
		})
	}
}

func TestSubmittedCreateWhoseWaitEndsLeavesNoNode(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	in, err := held(t, proxy, curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply},
		func(ctx context.Context) error {
			b := client.Create().WithProtection().WithMode(builders.PersistentSequential)
			_, err := b.Submit(testenv.Context(t), "/n-", nil).Wait(ctx)
			return err
		})
	wantErr(t, err, context.Canceled, "create", "/n-")
	equal(t, "nodes while the answer is on its way", len(tr.children("/")), 1)
	in.Remove()
	testenv.Eventually(t, func() bool { return len(tr.children("/")) == 0 }, "no node is left")
}

// An operation that its caller has given up does not touch what is the caller's.
func TestOperationThatWasGivenUpLeavesTheCallersVariables(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "data")
	var stat zk.Stat
	op := client.TransactionOp()
	for name, run := range map[string]func(ctx context.Context) error{
		"create2": func(ctx context.Context) error {
			_, err := client.Create().StoringStatIn(&stat).ForPath(ctx, "/made", nil)
			return err
		},
		"getData": func(ctx context.Context) error {
			_, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, "/n")
			return err
		},
		"getChildren2": func(ctx context.Context) error {
			_, err := client.GetChildren().StoringStatIn(&stat).ForPath(ctx, "/n")
			return err
		},
		"getACL": func(ctx context.Context) error {
			_, err := client.GetACL().StoringStatIn(&stat).ForPath(ctx, "/n")
			return err
		},
		"multi": func(ctx context.Context) error {
			results, err := client.Transaction().ForOperations(ctx, op.Check().ForPath("/n"))
			if results != nil {
				t.Errorf("results are %v", results)
			}
			return err
		},
		"exists": func(ctx context.Context) error {
			stat, err := client.CheckExists().ForPath(ctx, "/n")
			if stat != nil {
				t.Errorf("stat is %v", stat)
			}
			return err
		},
		"setData": func(ctx context.Context) error {
			stat, err := client.SetData().ForPath(ctx, "/n", nil)
			if stat != nil {
				t.Errorf("stat is %v", stat)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := held(t, proxy, curatortest.Rule{Ops: []string{name}, Action: curatortest.HoldReply}, run)
			if err == nil {
				t.Error("no error")
			}
			in.Remove()
			stat = zk.Stat{Version: 7} // with the race detector, this is the test
			if err := client.Sync().ForPath(testenv.Context(t), "/"); err != nil {
				t.Fatal(err)
			}
			equal(t, "stat", stat, zk.Stat{Version: 7})
		})
	}
}

// A removal behind the request that sets the watch finds it, also while neither is answered.
func TestRemoveWatchesBehindTheirSetting(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	ctx := testenv.Context(t)
	for name, set := range map[string]func(w *callbacks.Watcher) builders.Background{
		"exists": func(w *callbacks.Watcher) builders.Background {
			return client.CheckExists().UsingWatcher(w).InBackground(nil)
		},
		"getData": func(w *callbacks.Watcher) builders.Background {
			return client.GetData().UsingWatcher(w).InBackground(nil)
		},
		"getChildren2": func(w *callbacks.Watcher) builders.Background {
			return client.GetChildren().UsingWatcher(w).InBackground(nil)
		},
		"addWatch": func(w *callbacks.Watcher) builders.Background {
			return client.Watches().Add().UsingWatcher(w).InBackground(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			watcher, events := chanWatcher()
			held := proxy.Faults().Add(curatortest.Rule{Ops: []string{name}, Action: curatortest.HoldReply})
			if err := set(watcher).ForPath(ctx, "/n"); err != nil {
				t.Fatal(err)
			}
			if err := held.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			results := make(chan error, 1)
			remove := client.Watches().Remove(watcher).InBackground(
				func(_ context.Context, ev callbacks.Event) { results <- ev.Err })
			if err := remove.ForPath(ctx, "/n"); err != nil {
				t.Fatal(err)
			}
			held.Remove()
			if err := receive(t, results); err != nil {
				t.Error(err)
			}
			tr.awaitWatches()
			succeed(t, foreground.setData(t, client.SetData(), "/n", nil))
			wantNoEvents(t, client, events)
		})
	}
}

// Two watch the same node and go before either is answered: the last one takes the watch of the server with it.
func TestRemovalsOfTwoBehindTheirSettingLeaveNoWatch(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	ctx := testenv.Context(t)
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply})
	results := make(chan error, 4)
	report := func(_ context.Context, ev callbacks.Event) { results <- ev.Err }
	var watchers []*callbacks.Watcher
	for range 2 {
		watcher, _ := chanWatcher()
		watchers = append(watchers, watcher)
		if err := client.GetData().UsingWatcher(watcher).InBackground(report).ForPath(ctx, "/n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, watcher := range watchers {
		if err := client.Watches().Remove(watcher).InBackground(report).ForPath(ctx, "/n"); err != nil {
			t.Fatal(err)
		}
	}
	held.Remove()
	for range 4 {
		if err := receive(t, results); err != nil {
			t.Error(err)
		}
	}
	tr.awaitWatches()
}

// A watcher is removed while another one is being added, which is refused then.
func TestWatchOrphanedByRefusedAddIsRemoved(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	ctx := testenv.Context(t)
	refused := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Skip: 1, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply})
	results := make(chan error, 3)
	report := func(_ context.Context, ev callbacks.Event) { results <- ev.Err }
	first, _ := chanWatcher()
	second, _ := chanWatcher()
	for _, watcher := range []*callbacks.Watcher{first, second} {
		if err := client.GetData().UsingWatcher(watcher).InBackground(report).ForPath(ctx, "/n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := client.Watches().Remove(first).InBackground(report).ForPath(ctx, "/n"); err != nil {
		t.Fatal(err)
	}
	held.Remove()
	var got []error
	for range 3 {
		got = append(got, receive(t, results))
	}
	if got[0] != nil || !errors.Is(got[1], zk.ErrNoAuth) || got[2] != nil || refused.Hits() != 1 {
		t.Errorf("got %v", got)
	}
	tr.awaitWatches()
}
