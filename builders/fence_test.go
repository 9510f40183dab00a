package builders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

var (
	errDeposed = errors.New("deposed")
	errRetired = errors.New("retired")
)

// fencedWrite is a write of a fenced client in a directory that has the nodes n, with data, and full, with a child.
type fencedWrite struct {
	name string
	run  func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event
	done func(tr tree, dir string) bool
	// once is a write that could take effect twice, and so is not tried again.
	once bool
	// steps is one whose first request does nothing.
	steps bool
}

var fencedWrites = []fencedWrite{
	{
		name: "create", once: true, done: has("new"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create(), dir+"/new", nil)
		},
	},
	{
		name: "create sequential", once: true, done: has("s-0000000002"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().WithMode(builders.EphemeralSequential), dir+"/s-", nil)
		},
	},
	{
		name: "create protected", done: hasOneMore,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			b := client.Create().WithProtection().WithMode(builders.EphemeralSequential)
			return w.create(t, b, dir+"/s-", nil)
		},
	},
	{
		name: "create idempotent", done: has("new"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().Idempotent(), dir+"/new", []byte("data"))
		},
	},
	{
		name: "create or set, new", done: has("new"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().OrSetData(), dir+"/new", []byte("data"))
		},
	},
	{
		name: "create or set, there", done: changed, steps: true,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().OrSetData(), dir+"/n", []byte("after"))
		},
	},
	{
		name: "create with parents", done: has("a"), once: true, steps: true,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().CreatingParentsIfNeeded(), dir+"/a/b/c", nil)
		},
	},
	{
		name: "create with containers", done: has("a"), once: true, steps: true,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().CreatingParentContainersIfNeeded(), dir+"/a/b/c", nil)
		},
	},
	{
		name: "create container", done: has("new"), once: true,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.create(t, client.Create().WithMode(builders.Container), dir+"/new", nil)
		},
	},
	{
		name: "parents of exists", done: has("a"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.exists(t, client.CheckExists().CreatingParentsIfNeeded(), dir+"/a/b")
		},
	},
	{
		name: "delete", once: true, done: hasNot("n"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.delete(t, client.Delete(), dir+"/n")
		},
	},
	{
		name: "delete quietly", done: hasNot("n"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.delete(t, client.Delete().Quietly(), dir+"/n")
		},
	},
	{
		name: "delete guaranteed", done: hasNot("n"),
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.delete(t, client.Delete().Guaranteed().Quietly(), dir+"/n")
		},
	},
	{
		name: "delete with children", done: hasNot("full"), once: true, steps: true,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.delete(t, client.Delete().DeletingChildrenIfNeeded(), dir+"/full")
		},
	},
	{
		name: "setData", done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.setData(t, client.SetData(), dir+"/n", []byte("after"))
		},
	},
	{
		name: "setData of a version", once: true, done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.setData(t, client.SetData().WithVersion(0), dir+"/n", []byte("after"))
		},
	},
	{
		name: "setData idempotent", done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			return w.setData(t, client.SetData().WithVersion(0).Idempotent(), dir+"/n", []byte("after"))
		},
	},
	{
		name: "transaction", once: true, done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			op := client.TransactionOp()
			return w.transaction(t, client.Transaction(), op.SetData().ForPath(dir+"/n", []byte("after")),
				op.Create().ForPath(dir+"/new", nil))
		},
	},
	{
		name: "transaction of any version", done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			op := client.TransactionOp()
			return w.transaction(t, client.Transaction(), op.SetData().ForPath(dir+"/n", []byte("after")))
		},
	},
	{
		name: "transaction with protection", done: changed,
		run: func(t *testing.T, w way, client *framework.Client, dir string) callbacks.Event {
			op := client.TransactionOp()
			return w.transaction(t, client.Transaction(), op.SetData().ForPath(dir+"/n", []byte("after")),
				op.Create().WithProtection().ForPath(dir+"/new", nil))
		},
	},
}

func has(name string) func(tr tree, dir string) bool {
	return func(tr tree, dir string) bool { return tr.exists(dir + "/" + name) }
}

func hasNot(name string) func(tr tree, dir string) bool {
	return func(tr tree, dir string) bool { return !tr.exists(dir + "/" + name) }
}

func hasOneMore(tr tree, dir string) bool { return len(tr.children(dir)) == 3 }

func changed(tr tree, dir string) bool {
	data, _ := tr.read(dir + "/n")
	return data == "after"
}

// fill makes what a fenced write works on, and the node of the fence.
func fill(t *testing.T, tr tree, i int) (dir, fence string) {
	t.Helper()
	dir, fence = fmt.Sprintf("/d-%d", i), fmt.Sprintf("/fence-%d", i)
	tr.make("/ns"+dir, "")
	tr.make("/ns"+dir+"/n", "before")
	tr.make("/ns"+dir+"/full", "")
	tr.make("/ns"+dir+"/full/child", "")
	tr.make("/ns"+fence, "")
	return dir, fence
}

// inNamespace returns the tree below the namespace of the fenced client.
func (t tree) inNamespace() tree {
	t.root += "/ns"
	return t
}

func setUpFenced(t *testing.T) (*framework.Client, tree, *curatortest.Proxy) {
	t.Helper()
	client, tr, proxy := setUpProxied(t, framework.WithNamespace("ns"),
		framework.WithRetryPolicy(retry.NTimes(3, time.Millisecond)))
	succeed(t, foreground.exists(t, client.CheckExists(), "/")) // makes the namespace
	return client, tr, proxy
}

// eachFencedWrite runs a test for each write and way.
func eachFencedWrite(t *testing.T, client *framework.Client, tr tree,
	test func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, fence string),
) {
	t.Helper()
	i := 0
	for _, write := range fencedWrites {
		for _, w := range ways {
			t.Run(fmt.Sprintf("%s/%s", write.name, w), func(t *testing.T) {
				tr := tr
				tr.tb = t
				i++
				dir, fence := fill(t, tr, i)
				test(t, tr.inNamespace(), write, w, client.Fenced(testenv.Context(t), errDeposed, fence), dir, fence)
			})
		}
	}
}

func TestFencedWriteTakesEffectWhileTheNodeIsThere(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	eachFencedWrite(t, client, tr,
		func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, _ string) {
			succeed(t, write.run(t, w, fenced, dir))
			if !write.done(tr, dir) {
				t.Error("has no effect")
			}
		})
}

func TestFencedWriteIsRefusedWhenTheNodeIsGone(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	eachFencedWrite(t, client, tr,
		func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, fence string) {
			tr.remove(fence)
			ev := write.run(t, w, fenced, dir)
			if !errors.Is(ev.Err, errDeposed) || errors.Is(ev.Err, zk.ErrNoNode) || errors.Is(ev.Err, framework.ErrUncertain) {
				t.Errorf("error is %v", ev.Err)
			} else if !strings.HasSuffix(ev.Err.Error(), "fence /ns"+fence+": deposed") {
				t.Errorf("text is %q", ev.Err)
			}
			if write.done(tr, dir) {
				t.Error("has taken effect")
			}
		})
}

func TestFencedWriteWithoutTheRightToReadTheNodeNamesIt(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	eachFencedWrite(t, client, tr,
		func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, fence string) {
			_, err := tr.conn.SetACL(tr.root+fence, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
			if err != nil {
				t.Fatal(err)
			}
			ev := write.run(t, w, fenced, dir)
			if !errors.Is(ev.Err, zk.ErrNoAuth) || errors.Is(ev.Err, errDeposed) {
				t.Errorf("error is %v", ev.Err)
			} else if !strings.Contains(ev.Err.Error(), "fence /ns"+fence+" cannot be read") {
				t.Errorf("text is %q", ev.Err)
			}
			if write.done(tr, dir) {
				t.Error("has taken effect")
			}
		})
}

func TestFencedWriteAfterTheHoldFailsWithoutARequest(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpFenced(t)
	eachFencedWrite(t, client, tr,
		func(t *testing.T, tr tree, write fencedWrite, w way, _ *framework.Client, dir, fence string) {
			holding, end := context.WithCancelCause(context.Background())
			fenced := client.Fenced(holding, errDeposed, fence)
			end(errRetired)
			sent := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: zk.ErrNothing, MayMiss: true,
			})
			defer sent.Remove()
			if ev := write.run(t, w, fenced, dir); !errors.Is(ev.Err, errRetired) {
				t.Errorf("error is %v", ev.Err)
			}
			succeed(t, foreground.sync(t, client.Sync(), "/")) // behind what may have been sent
			if sent.Err() != nil || sent.Hits() > 0 || write.done(tr, dir) {
				t.Errorf("%d requests, %v", sent.Hits(), sent.Err())
			}
			succeed(t, w.getData(t, fenced.GetData(), dir+"/n")) // reads are as ever
		})
}

// The node of the fence is still there, and the process must write no more.
func TestFencedClientMakesNoNamespaceAfterTheHold(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	_, fence := fill(t, tr, 1)
	holding, end := context.WithCancelCause(context.Background())
	late := client.Fenced(holding, errDeposed, fence).UsingNamespace("late")
	end(errRetired)
	for _, w := range ways {
		wantErr(t, w.create(t, late.Create(), "/n", nil).Err, errRetired, "create", "/n")
	}
	succeed(t, foreground.sync(t, client.Sync(), "/")) // behind what may have been sent
	if tr.exists("/late") {
		t.Error("the namespace was made")
	}
}

func TestLostAnswerToAFencedWrite(t *testing.T) {
	t.Parallel()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			client, tr, proxy := setUpFenced(t)
			eachFencedWrite(t, client, tr,
				func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, _ string) {
					succeed(t, foreground.exists(t, client.CheckExists(), "/")) // no node is newer than what the client knows
					cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: action, Count: 1})
					defer cut.Remove()
					ev := write.run(t, w, fenced, dir)
					if cut.Hits() != 1 {
						t.Fatalf("%d cuts: %v", cut.Hits(), cut.Err())
					}
					succeed(t, foreground.sync(t, client.Sync(), "/")) // what was cut stands again
					done := true
					if write.once {
						if !errors.Is(ev.Err, framework.ErrUncertain) || !errors.Is(ev.Err, framework.ErrConnectionLoss) {
							t.Errorf("error is %v", ev.Err)
						}
						if retry.IsRetryable(ev.Err) {
							t.Error("a loop would try it again")
						}
						done = action == curatortest.CutAfter && !write.steps
					} else {
						succeed(t, ev)
					}
					if write.done(tr, dir) != done {
						t.Errorf("took effect: %t", !done)
					}
				})
		})
	}
}

// TestFencedWriteThatWasNotSentIsTriedAgain has a write wait for a connection.
func TestFencedWriteThatWasNotSentIsTriedAgain(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpFenced(t)
	eachFencedWrite(t, client, tr,
		func(t *testing.T, tr tree, write fencedWrite, w way, fenced *framework.Client, dir, _ string) {
			connect := disconnect(t, client, proxy)
			result := make(chan callbacks.Event)
			go func() { result <- write.run(t, w, fenced, dir) }()
			testenv.Eventually(t, func() bool { return client.Health().Parked > 0 }, "it waits")
			connect()
			if ev := receive(t, result); ev.Err != nil {
				t.Error(ev.Err)
			}
			if !write.done(tr, dir) {
				t.Error("has no effect")
			}
		})
}

// TestFencedWriteAgainAfterALostAnswerAndTheFence loses the answer to a write that is repeated, and the fence before
// that: the first may have taken effect, the second has not.
func TestFencedWriteAgainAfterALostAnswerAndTheFence(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpFenced(t)
			dir, fence := fill(t, tr, 1)
			cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.CutAfter, Count: 1})
			held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.HoldRequest, Skip: 1})
			result := make(chan callbacks.Event)
			go func() {
				fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
				result <- w.setData(t, fenced.SetData(), dir+"/n", []byte("after"))
			}()
			for _, in := range []*curatortest.Injection{cut, held} {
				if err := in.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
			}
			tr.inNamespace().remove(fence)
			held.Release()
			err := receive(t, result).Err
			if !errors.Is(err, errDeposed) || !errors.Is(err, framework.ErrUncertain) {
				t.Errorf("error is %v", err)
			}
			if !changed(tr.inNamespace(), dir) {
				t.Error("the first has no effect")
			}
		})
	}
}

// The caller gives up a protected create that takes effect, and the fence is gone before the node is cleared away.
func TestGivenUpFencedCreateLeavesNothingWhenTheFenceIsGone(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
	before := tr.inNamespace().children(dir)
	for name, create := range map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := fenced.Create().WithProtection().WithMode(builders.Ephemeral).ForPath(ctx, dir+"/new", nil)
			return err
		},
		"transaction": func(ctx context.Context) error {
			op := fenced.TransactionOp().Create().WithProtection().WithMode(builders.Ephemeral).ForPath(dir+"/new", nil)
			_, err := fenced.Transaction().ForOperations(ctx, op)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !tr.inNamespace().exists(fence) {
				tr.inNamespace().make(fence, "")
			}
			answer := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.HoldReply, Count: 1})
			ctx, cancel := context.WithCancel(testenv.Context(t))
			failed := make(chan error)
			go func() { failed <- create(ctx) }()
			if err := answer.Wait(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			tr.inNamespace().remove(fence)
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			answer.Release()
			testenv.Eventually(t, func() bool { return slices.Equal(tr.inNamespace().children(dir), before) },
				"the node is gone")
		})
	}
}

func TestFencedWriteKeepsItsOwnError(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
	for _, w := range ways {
		ev := w.create(t, fenced.Create(), dir+"/n", nil)
		wantErr(t, ev.Err, zk.ErrNodeExists, "create", dir+"/n")
		ev = w.create(t, fenced.Create(), dir+"/none/n", nil)
		wantErr(t, ev.Err, zk.ErrNoNode, "create", dir+"/none/n")
		ev = w.delete(t, fenced.Delete(), dir+"/full")
		wantErr(t, ev.Err, zk.ErrNotEmpty, "delete", dir+"/full")
		ev = w.delete(t, fenced.Delete(), dir+"/none")
		wantErr(t, ev.Err, zk.ErrNoNode, "delete", dir+"/none")
		ev = w.setData(t, fenced.SetData().WithVersion(7), dir+"/n", nil)
		wantErr(t, ev.Err, zk.ErrBadVersion, "setData", dir+"/n")
		op := fenced.TransactionOp()
		ev = w.transaction(t, fenced.Transaction(), op.Check().ForPath(dir), op.Delete().ForPath(dir+"/n"),
			op.SetData().WithVersion(7).ForPath(dir+"/full", nil))
		wantErr(t, ev.Err, zk.ErrBadVersion, "multi", "")
		equal(t, "text", ev.Err.Error(), "curator: multi: op 2 setData "+dir+"/full: version conflict")
		equal(t, "results", len(ev.Results), 3)
		equal(t, "error of the result", ev.Results[2].Err, zk.ErrBadVersion, sameError)
	}
}

// TestFencedCreateGivesTheStat is for servers that do not give it in a transaction.
func TestFencedCreateGivesTheStat(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
	for _, w := range ways {
		for _, mode := range []builders.CreateMode{
			builders.Persistent, builders.Ephemeral, builders.PersistentSequential, builders.EphemeralSequential,
			builders.Container,
		} {
			var stat zk.Stat
			path := fmt.Sprintf("%s/%s-%v", dir, w, mode)
			ev := succeed(t, w.create(t, fenced.Create().WithMode(mode).StoringStatIn(&stat), path, []byte("data")))
			_, want := tr.read("/ns" + ev.Name)
			equal(t, "stored", stat, want)
			if w == background {
				equal(t, "of the event", *ev.Stat, want)
			}
		}
	}
}

// TestFencedCreateWhoseNodeIsGoneGivesAStat deletes the node before its Stat can be asked for.
func TestFencedCreateWhoseNodeIsGoneGivesAStat(t *testing.T) {
	t.Parallel()
	if givesStatsOfCreates(t) {
		t.Skip("no request")
	}
	for _, w := range ways {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lost=%t", w, lost), func(t *testing.T) {
				client, tr, proxy := setUpFenced(t)
				dir, fence := fill(t, tr, 1)
				fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
				action := curatortest.HoldRequest
				if lost {
					action = curatortest.CutBefore
				}
				exists := proxy.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Action: curatortest.HoldRequest, Count: 1})
				cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Action: action, Count: 1})
				var stat zk.Stat
				result := make(chan callbacks.Event)
				go func() {
					b := fenced.Create().WithMode(builders.Ephemeral).StoringStatIn(&stat)
					result <- w.create(t, b, dir+"/new", []byte("data"))
				}()
				if err := exists.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				_, real := tr.read("/ns" + dir + "/new")
				tr.remove("/ns" + dir + "/new")
				exists.Release()
				cut.Release()
				succeed(t, receive(t, result))
				real.Ctime, real.Mtime = 0, 0
				equal(t, "stat", stat, real)
			})
		}
	}
}

func TestFenceOfATransaction(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	tr.make("/ns/second", "")
	free := client.UsingNamespace("")
	for _, w := range ways {
		op := client.TransactionOp()
		check := op.Fence(errDeposed, fence, "/second")
		// In a view of another namespace, not in front.
		write := free.TransactionOp().SetData().ForPath("/ns"+dir+"/n", []byte(w))
		ev := succeed(t, w.transaction(t, free.Transaction(), write, check, write))
		equal(t, "results", len(ev.Results), 3)
		equal(t, "type", ev.Results[1].Type, callbacks.OperationCheck)
		if ev.Results[0].Stat == nil || ev.Results[1].Stat != nil || ev.Results[2].Stat == nil {
			t.Errorf("results are %+v", ev.Results)
		}

		ev = w.transaction(t, free.Transaction(), check, write, op.Create().ForPath(dir+"/n", nil), check)
		wantErr(t, ev.Err, zk.ErrNodeExists, "multi", "")
		equal(t, "text", ev.Err.Error(), "curator: multi: op 2 create "+dir+"/n: node already exists")

		cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.CutAfter, Count: 1})
		ev = w.transaction(t, client.Transaction(), check, op.Create().ForPath(dir+"/"+string(w), nil))
		wantErr(t, ev.Err, framework.ErrUncertain, "multi", "")
		cut.Remove()

		tr.remove("/ns/second")
		ev = w.transaction(t, client.Transaction(), write, check)
		wantErr(t, ev.Err, errDeposed, "multi", "")
		equal(t, "text", ev.Err.Error(), "curator: multi: op 1 check /ns/second: deposed")
		equal(t, "error of the result", ev.Results[1].Err, errDeposed, sameError)
		tr.make("/ns/second", "")
	}
}

func TestViewsOfAFencedClientAreFenced(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	tr.make("/ns/second", "")
	fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
	views := map[string]*framework.Client{
		"":         fenced,
		"other":    fenced.UsingNamespace("other"),
		"ns":       fenced.UsingNamespace("").UsingNamespace("ns"),
		"ns" + dir: fenced.UsingNamespace("ns" + dir),
		"removing": fenced.WatcherRemoving().UsingNamespace("removing"),
		"twice":    fenced.Fenced(testenv.Context(t), errRetired, "/second").UsingNamespace("twice"),
	}
	for name, view := range views {
		succeed(t, foreground.create(t, view.Create(), "/"+strings.ReplaceAll(name, "/", "-")+"-new", nil))
	}
	tr.remove("/ns/second")
	ev := foreground.create(t, views["twice"].Create(), "/more", nil)
	wantErr(t, ev.Err, errRetired, "create", "/more")
	tr.remove("/ns" + fence)
	for _, view := range views {
		ev := foreground.create(t, view.Create(), "/more", nil)
		wantErr(t, ev.Err, errDeposed, "create", "/more")
	}
	late := fenced.UsingNamespace("late")
	ev = foreground.create(t, late.Create(), "/more", nil)
	wantErr(t, ev.Err, errDeposed, "create", "/more")
	if tr.exists("/late") {
		t.Error("the namespace was made")
	}
	succeed(t, foreground.create(t, client.UsingNamespace("late").Create(), "/more", nil))
	succeed(t, foreground.create(t, client.Create(), "/more", nil))
}

func TestFencedClientRefusesWhatCannotBeFenced(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	fenced := client.Fenced(testenv.Context(t), errDeposed, fence)
	for _, w := range ways {
		ev := w.setACL(t, fenced.SetACL().WithACL(zk.WorldACL(zk.PermRead)...), dir)
		wantErr(t, ev.Err, framework.ErrUnimplemented, "setACL", dir)
		ev = w.reconfig(t, fenced.Reconfig().Leaving("1"))
		wantErr(t, ev.Err, framework.ErrUnimplemented, "reconfig", builders.ConfigNode)
	}
	equal(t, "ACL", tr.acl("/ns"+dir), builders.OpenACL)
}

func TestBadFenceIsTheErrorOfEveryWrite(t *testing.T) {
	t.Parallel()
	client, tr, _ := setUpFenced(t)
	dir, fence := fill(t, tr, 1)
	ctx := testenv.Context(t)
	good := client.Fenced(ctx, errDeposed, fence)
	for _, tt := range []struct {
		fenced *framework.Client
		want   error
	}{
		{good.Fenced(ctx, errDeposed), framework.ErrBadArguments},
		{good.Fenced(ctx, nil, fence), framework.ErrBadArguments},
		{good.Fenced(ctx, errDeposed, fence, "path"), zk.ErrInvalidPath},
		{good.Fenced(ctx, errDeposed).Fenced(ctx, errDeposed, fence), framework.ErrBadArguments},
	} {
		fenced := tt.fenced
		ev := foreground.setData(t, fenced.SetData(), dir+"/n", nil)
		wantErr(t, ev.Err, tt.want, "setData", dir+"/n")
		succeed(t, foreground.getData(t, fenced.GetData(), dir+"/n"))
	}
	for _, tt := range []struct {
		op   builders.TransactionOperation
		want error
	}{
		{client.TransactionOp().Fence(errDeposed), framework.ErrBadArguments},
		{client.TransactionOp().Fence(nil, fence), framework.ErrBadArguments},
		{client.TransactionOp().Fence(errDeposed, "path"), zk.ErrInvalidPath},
		{client.UsingNamespace("a//b").TransactionOp().Fence(errDeposed, "/a"), zk.ErrInvalidPath},
	} {
		ev := foreground.transaction(t, client.Transaction(), tt.op)
		wantErr(t, ev.Err, tt.want, "check", "")
	}
}
