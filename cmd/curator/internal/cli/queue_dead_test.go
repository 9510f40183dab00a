package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/queue"
)

// children returns the sorted names of the children of a node.
func children(t *testing.T, client *framework.Client, path string) []string {
	t.Helper()
	names, err := client.GetChildren().ForPath(testenv.Context(t), path)
	testclient.Must(t, err)
	slices.Sort(names)
	return names
}

// contents returns the data of the children of /q, in the order of their numbers.
func contents(t *testing.T, client *framework.Client) (all []string) {
	t.Helper()
	names := children(t, client, "/q")
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	for _, name := range names {
		data, err := client.GetData().ForPath(testenv.Context(t), "/q/"+name)
		testclient.Must(t, err)
		all = append(all, string(data))
	}
	return all
}

// bury creates /q, /locks, and some dead letters at /dead, and returns what they contain.
func bury(t *testing.T, client *framework.Client, n int) (want []string) {
	t.Helper()
	for _, path := range []string{"/q", "/locks", "/dead"} {
		_, err := client.Create().ForPath(t.Context(), path, nil)
		testclient.Must(t, err)
	}
	for i := range n {
		item := fmt.Sprintf("item-%03d", i)
		data := []byte("\x00\x01\x00\x01\x01\x00\x00\x00\x08" + item + "\x02")
		_, err := client.Create().WithMode(builders.PersistentSequential).ForPath(t.Context(), "/dead/queue-", data)
		testclient.Must(t, err)
		want = append(want, string(data))
	}
	return want
}

// wantMoved checks that all letters are in the queue, each once, and in their order.
func wantMoved(t *testing.T, client *framework.Client, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, client)); diff != "" {
		t.Errorf("in the queue (-want +got):\n%s", diff)
	}
	if left := children(t, client, "/dead"); len(left) > 0 {
		t.Errorf("still among the dead letters: %q", left)
	}
}

// stateCounts counts the states that a requeue has printed as JSON.
func stateCounts(stdout string) (n map[string]int) {
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var l requeuedLetter
		if n == nil {
			n = map[string]int{}
		}
		if d.Decode(&l) != nil {
			l.State = "unreadable"
		}
		if n[l.State]++; l.State == "unreadable" {
			break
		}
	}
	return n
}

func TestQueueDeadShowsWhatTheNodesSay(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	q, err := queue.NewBuilder(client, func(context.Context, string) error { return errors.New("broken") },
		codec.Text{}, "/q").LockPath("/locks").DeadLetterPath("/dead").MaxDeliveries(2).
		OnError(func(context.Context, error) {}).BuildPriorityQueue(0)
	testclient.Must(t, err)
	testclient.Must(t, q.Start())
	testclient.Must(t, q.Put(t.Context(), "fails", 7))
	testclient.Must(t, q.FlushPuts(t.Context()))
	_, err = client.Create().WithMode(builders.PersistentSequential).ForPath(t.Context(), "/q/queue-100000009",
		[]byte("?"))
	testclient.Must(t, err)
	testenv.Eventually(t, func() bool { return len(children(t, client, "/dead")) == 2 }, "both are dead letters")
	testclient.Must(t, q.Close())
	// A trace, and the past of an item whose codec has failed, as the recipe writes them.
	_, err = client.Create().WithMode(builders.PersistentSequential).ForPath(t.Context(), "/dead/queue-10000000A",
		[]byte("\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02"+
			"\x00CDC\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x01\x00\x00\x00\x00\x00"+
			"\x00CTC\x01"+`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`))
	testclient.Must(t, err)

	got := invoke(t.Context(), []string{"queue", "dead", "/dead"}, environ...)
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 5 || got.code != CodeOK {
		t.Fatalf("queue dead: %+v", got)
	}
	for i, want := range [][]string{
		{"ITEMS", "TRACE", "DATA"},
		{"1", "-", "fails"},
		{"corrupt", "-", "?"},
		{"2", "0af7651916cd43dd8448eb211c80319c", "a"},
	} {
		fields := strings.Fields(lines[i])
		if diff := cmp.Diff(want, fields[len(fields)-3:]); diff != "" {
			t.Errorf("line %d: %s (-want +got):\n%s", i, lines[i], diff)
		}
	}
	got = invoke(t.Context(), []string{"queue", "dead", "/dead", "-o", "json"}, environ...)
	for _, want := range []string{
		`"id":"7",`, `"items":[{"data":"fails"}]}`, `"items":[{"data":"?"}],"corrupt":true}`,
		`"failures":3,"put":"2004-11-03T19:53:47.776Z","trace":"0af7651916cd43dd8448eb211c80319c"}`,
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("queue dead -o json lacks %s: %+v", want, got)
		}
	}
	_, err = client.Create().ForPath(t.Context(), "/none-yet", nil)
	testclient.Must(t, err)
	got = invoke(t.Context(), []string{"queue", "dead", "--count", "/dead", "/none-yet"}, environ...)
	lines = strings.Split(got.stdout, "\n")
	if len(lines) != 4 || !slices.Equal(strings.Fields(lines[1])[:3], []string{"/dead", "3", "1"}) ||
		!slices.Equal(strings.Fields(lines[2]), []string{"/none-yet", "0", "0", "0", "-"}) {
		t.Errorf("queue dead --count: %+v", got)
	}
	// A path that is missing does not hide the others.
	got = invoke(t.Context(), []string{"queue", "dead", "--count", "/none", "/dead"}, environ...)
	if got.code != CodeNoNode || !strings.Contains(got.stdout, "/dead") || strings.Contains(got.stdout, "/none") {
		t.Errorf("queue dead --count with a missing path: %+v", got)
	}
}

// TestQueueDeadShowsWhatIsBehindALie has a letter with a time that JSON does not have. The next one is printed too.
func TestQueueDeadShowsWhatIsBehindALie(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	bury(t, client, 0)
	for _, put := range []string{"\x7f\xff\xff\xff\xff\xff\xff\xff", "\x80\x00\x00\x00\x00\x00\x00\x00"} {
		_, err := client.Create().WithMode(builders.PersistentSequential).ForPath(t.Context(), "/dead/queue-",
			[]byte("\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x02\x00CDC\x02\x00\x00\x00\x03\x00\x00\x00\x04"+put))
		testclient.Must(t, err)
	}
	for _, format := range []string{"json", "yaml", "table"} {
		got := invoke(t.Context(), []string{"queue", "dead", "/dead", "-o", format}, environ...)
		if got.code != CodeOK || strings.Count(got.stdout, "/dead/queue-") != 2 {
			t.Errorf("-o %s: %+v", format, got)
		}
	}
}

func TestQueueRequeueKeepsNamesAndBytesOfJava(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "recipes", "queue", "testdata", "java", "nodes.json"))
	testclient.Must(t, err)
	var kinds map[string][]struct{ Name, Data string }
	testclient.Must(t, json.Unmarshal(text, &kinds))
	if len(kinds) != 4 {
		t.Fatalf("%d kinds of queues", len(kinds))
	}
	for kind, nodes := range kinds {
		dead, to := "/"+kind+"-dead", "/"+kind
		var want []string
		for _, path := range []string{dead, to} {
			_, err := client.Create().ForPath(t.Context(), path, nil)
			testclient.Must(t, err)
		}
		for _, n := range nodes {
			prefix := n.Name[:len(n.Name)-10]
			data, err := hex.DecodeString(n.Data)
			testclient.Must(t, err)
			_, err = client.Create().WithMode(builders.PersistentSequential).ForPath(t.Context(), dead+"/"+prefix, data)
			testclient.Must(t, err)
			want = append(want, prefix+" "+n.Data)
		}
		if r := invoke(t.Context(), []string{"queue", "requeue", dead, to, "--all"}, environ...); r.code != CodeOK {
			t.Fatalf("%s: %+v", kind, r)
		}
		var got []string
		for i, name := range children(t, client, to) {
			data, err := client.GetData().ForPath(t.Context(), to+"/"+name)
			testclient.Must(t, err)
			got = append(got, name[:len(name)-10]+" "+hex.EncodeToString(data))
			if kind == "queue" && name != nodes[i].Name { // there is no other order in it
				t.Errorf("%s: node %d is %s, want %s", kind, i, name, nodes[i].Name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestQueueRequeueChoosesLetters(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	want := bury(t, client, 120)
	run := func(line string, code int, states map[string]int) {
		t.Helper()
		got := invoke(t.Context(), append(strings.Fields("queue requeue -o json"), strings.Fields(line)...), environ...)
		if diff := cmp.Diff(states, stateCounts(got.stdout)); diff != "" || got.code != code {
			t.Errorf("%s: code %d, want %d: %s (-want +got):\n%s", line, got.code, code, got.stderr, diff)
		}
	}
	run("/dead /q -n 2 --dry-run", CodeOK, map[string]int{"dry-run": 2})
	run("/dead /q --all --dry-run", CodeOK, map[string]int{"dry-run": 120})
	if moved := children(t, client, "/q"); len(moved) > 0 {
		t.Errorf("a dry run has moved %q", moved)
	}
	run("/dead /q -n 1", CodeOK, map[string]int{"requeued": 1})
	run("/dead /q queue-0000000001 /dead/queue-0000000002", CodeOK, map[string]int{"requeued": 2})
	run("/dead /q queue-0000000002 queue-0000000003", CodeOK, map[string]int{"requeued": 1, "gone": 1})
	run("/dead /q queue-0000000003 --dry-run", CodeOK, map[string]int{"gone": 1})
	run("/dead /q --locks /locks -n 10", CodeOK, map[string]int{"requeued": 10})
	run("/dead /q --all", CodeOK, map[string]int{"requeued": 106})
	run("/dead /q --all", CodeOK, nil) // again
	wantMoved(t, client, want)
	if locks := children(t, client, "/locks"); len(locks) > 0 {
		t.Errorf("the locks are %q", locks)
	}
	got := invoke(t.Context(), []string{"queue", "requeue", "/q", "/dead", "-n", "1"}, environ...)
	if fields := strings.Fields(got.stdout); !slices.Equal(fields[3:], []string{
		"/q/queue-0000000000", "requeued", "/dead/queue-0000000120",
	}) {
		t.Errorf("in a table: %+v", got)
	}

	for _, line := range []string{
		"/dead", "/dead /q", "/dead /q -n 0", "/dead /q -n 1 --all", "/dead /q --all queue-0000000001", "/dead /dead --all",
		"/dead /q --all --locks /q", "/dead /q other", "/dead /q /other/queue-0000000001", "dead /q --all", "/dead q --all",
		"/ /q --all", "/dead /q queue-99999999999", "/dead /q queue-000000001",
	} {
		run(line, CodeUsage, nil)
	}
	run("/none /q --all", CodeNoNode, nil)
	run("/dead /typo --all", CodeNoNode, nil)
	run("/dead /q --all --locks /typo", CodeNoNode, nil)
	testclient.Must(t, queue.NewSimpleDistributedQueue(client, "/simple").Offer(t.Context(), []byte("plain")))
	run("/simple /q --all", CodeUsage, nil)
}

// TestQueueRequeueKeepsNoData has a letter without data, as zkCli creates it. This client cannot.
func TestQueueRequeueKeepsNoData(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	bury(t, client, 0)
	conn, _, err := zk.Connect([]string{server.Addr()}, 10*time.Second, zk.WithLogInfo(false))
	testclient.Must(t, err)
	defer conn.Close()
	_, err = conn.Create("/dead/queue-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	testclient.Must(t, err)
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /q --all --connect "+server.ConnectString()))
	if got.code != CodeOK {
		t.Errorf("%+v", got)
	}
	wantMoved(t, client, []string{""})
}

// TestQueueRequeueNamesTheNodeOfTheQueue has locks below the queue, and a queue at the root.
func TestQueueRequeueNamesTheNodeOfTheQueue(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	bury(t, client, 2)
	_, err := client.Create().ForPath(t.Context(), "/q/locks", nil)
	testclient.Must(t, err)
	for line, want := range map[string]string{
		"/dead /q -n 1 --locks /q/locks": `"to":"/q/queue-0000000001"`, // /q/locks has counted too
		"/dead / -n 1 --any-kind":        `"to":"/queue-000000000`,     // it has the nodes of others
	} {
		got := invoke(t.Context(), append(strings.Fields("queue requeue -o json"), strings.Fields(line)...), environ...)
		if got.code != CodeOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
}

// TestQueueRequeueReportsWhatIsBehindAnError has the servers refuse the second letter, with others under way.
func TestQueueRequeueReportsWhatIsBehindAnError(t *testing.T) {
	chroot := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, chroot)
	client := testclient.Connect(t, testenv.Addr(t)+chroot)
	bury(t, client, 4)
	refused := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"multi"}, Path: chroot + "/dead/queue-0000000001", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		Count: 1,
	})
	testclient.Must(t, refused.Err())
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /q --all -o json --connect "+connect))
	if got.code != CodeRefused || stateCounts(got.stdout)["requeued"] != 3 || len(children(t, client, "/q")) != 3 {
		t.Errorf("%+v, want code %d and 3 letters in the queue", got, CodeRefused)
	}
}

// TestQueueRequeueAnswersAreLost cuts the connection at the transaction of a letter in the middle.
func TestQueueRequeueAnswersAreLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action            curatortest.Action
		uncertain, surely int
	}{
		"done":     {action: curatortest.CutAfter, uncertain: 1, surely: 1},
		"not done": {action: curatortest.CutBefore, uncertain: 10}, // the answers to ten before it may be lost too
	} {
		t.Run(name, func(t *testing.T) {
			chroot := testenv.Chroot(t)
			proxy, connect := testclient.Proxy(t, chroot)
			client := testclient.Connect(t, testenv.Addr(t)+chroot)
			want := bury(t, client, 120)
			cut := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"multi"}, Path: chroot + "/dead/queue-0000000060", Action: c.action, Count: 1,
			})
			testclient.Must(t, cut.Err())
			got := invoke(t.Context(), strings.Fields("queue requeue /dead /q --all -o json --connect "+connect))
			n := stateCounts(got.stdout)
			if n["requeued"]+n["uncertain"] != 120 || n["uncertain"] > c.uncertain || n["uncertain"] < c.surely {
				t.Errorf("the states are %v", n)
			}
			if got.code != CodeOK || cut.Hits() != 1 {
				t.Errorf("code %d, %d cuts: %s", got.code, cut.Hits(), got.stderr)
			}
			wantMoved(t, client, want)
		})
	}
}

// TestQueueRequeueGivesUpWhatIsLostEachTime has a letter that the servers never answer, as one that is too large.
func TestQueueRequeueGivesUpWhatIsLostEachTime(t *testing.T) {
	t.Parallel()
	chroot := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, chroot)
	client := testclient.Connect(t, testenv.Addr(t)+chroot)
	bury(t, client, 3)
	cut := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"multi"}, Path: chroot + "/dead/queue-0000000001", Action: curatortest.CutBefore,
	})
	testclient.Must(t, cut.Err())
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /q --all -o json --connect "+connect))
	if got.code != CodeFailed || !strings.Contains(got.stderr, "/dead/queue-0000000001: lost 8 times") {
		t.Errorf("%+v", got)
	}
	cut.Remove()
	if n := len(children(t, client, "/dead")) + len(children(t, client, "/q")); n != 3 {
		t.Errorf("%d letters, want 3", n)
	}
}

// TestQueueRequeueLetterChanges has somebody else change a letter while a request about it is on its way.
func TestQueueRequeueLetterChanges(t *testing.T) {
	for name, c := range map[string]struct {
		op     string
		change func(t *testing.T, client *framework.Client)
		state  string
		queued []string
	}{
		"data behind the read": {"multi", func(t *testing.T, client *framework.Client) {
			_, err := client.SetData().ForPath(t.Context(), "/dead/queue-0000000000", []byte("changed"))
			testclient.Must(t, err)
		}, "requeued", []string{"changed"}},
		"gone behind the read": {"multi", func(t *testing.T, client *framework.Client) {
			testclient.Must(t, client.Delete().ForPath(t.Context(), "/dead/queue-0000000000"))
		}, "gone", nil},
		"gone before the read": {"getData", func(t *testing.T, client *framework.Client) {
			testclient.Must(t, client.Delete().ForPath(t.Context(), "/dead/queue-0000000000"))
		}, "gone", nil},
		"another of its name": {"getData", func(t *testing.T, client *framework.Client) {
			testclient.Must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(t.Context(), "/dead"))
			_, err := client.Create().ForPath(t.Context(), "/dead", nil)
			testclient.Must(t, err)
			_, err = client.Create().ForPath(t.Context(), "/dead/queue-0000000000", []byte("another"))
			testclient.Must(t, err)
		}, "gone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			chroot := testenv.Chroot(t)
			proxy, connect := testclient.Proxy(t, chroot)
			client := testclient.Connect(t, testenv.Addr(t)+chroot)
			bury(t, client, 1)
			hold := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{c.op}, Path: chroot + "/dead/*", Action: curatortest.HoldRequest, Count: 1,
			})
			testclient.Must(t, hold.Err())
			done := make(chan result, 1)
			go func() {
				done <- invoke(t.Context(), strings.Fields("queue requeue /dead /q --all -o json --connect "+connect))
			}()
			testclient.Must(t, hold.Wait(testenv.Context(t)))
			c.change(t, client)
			hold.Release()
			got := <-done
			if !cmp.Equal(stateCounts(got.stdout), map[string]int{c.state: 1}) || got.code != CodeOK {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(c.queued, contents(t, client)); diff != "" {
				t.Errorf("in the queue (-want +got):\n%s", diff)
			}
		})
	}
}

// TestQueueRequeueUnderFaults cuts connections again and again while two requeues are at work, which are started again
// until they succeed.
func TestQueueRequeueUnderFaults(t *testing.T) {
	t.Parallel()
	chroot := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, chroot)
	client := testclient.Connect(t, testenv.Addr(t)+chroot)
	want := bury(t, client, 400)
	var cuts []*curatortest.Injection
	for i, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply} {
		cuts = append(cuts, proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"multi", "getData"}, Path: chroot + "/dead/*", Action: action, Chance: 0.01, Seed: uint64(i + 1),
			Count: 3, MayMiss: true,
		}))
		testclient.Must(t, cuts[i].Err())
	}
	var both sync.WaitGroup
	for _, locks := range [][]string{nil, {"--locks", "/locks"}} {
		both.Go(func() {
			args := append(strings.Fields("queue requeue /dead /q --all -o json --connect "+connect), locks...)
			for i := 0; ; i++ {
				got := invoke(t.Context(), args)
				if got.code == CodeOK {
					return
				}
				if i == 100 || t.Context().Err() != nil {
					t.Errorf("run %d: code %d: %s", i, got.code, got.stderr)
					return
				}
			}
		})
	}
	both.Wait()
	hits := 0
	for _, cut := range cuts {
		hits += cut.Hits()
	}
	t.Logf("%d faults", hits)
	if hits == 0 {
		t.Error("there was no fault")
	}
	got := contents(t, client)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the queue (-want +got):\n%s", diff)
	}
	if left := children(t, client, "/dead"); len(left) > 0 {
		t.Errorf("still among the dead letters: %q", left)
	}
}

func TestQueueRequeueTwoAtOnce(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	want := bury(t, client, 200)
	var both sync.WaitGroup
	results := make([]result, 2)
	for i := range results {
		both.Go(func() {
			results[i] = invoke(t.Context(), strings.Fields("queue requeue /dead /q --all --locks /locks -o json"), environ...)
		})
	}
	both.Wait()
	moved := 0
	for _, r := range results {
		if r.code != CodeOK {
			t.Errorf("%+v", r)
		}
		moved += stateCounts(r.stdout)["requeued"]
	}
	if moved != len(want) {
		t.Errorf("%d letters were moved, want %d", moved, len(want))
	}
	got := contents(t, client)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the queue (-want +got):\n%s", diff)
	}
}

// TestQueueRequeueBesideConsumers has a consumer of the queue, and one of the dead letters that holds the first.
func TestQueueRequeueBesideConsumers(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	const n = 60
	bury(t, client, n)
	held, release := make(chan struct{}), make(chan struct{})
	of := func(consume queue.Consumer[string], path, locks string) *queue.DistributedQueue[string] {
		q, err := queue.NewBuilder(client, consume, codec.Text{}, path).LockPath(locks).Prefetch(0).BuildQueue()
		testclient.Must(t, err)
		testclient.Must(t, q.Start())
		return q
	}
	freed := sync.OnceFunc(func() { close(release) })
	defer freed()
	letters := of(func(context.Context, string) error { close(held); <-release; return nil }, "/dead", "/locks")
	<-held
	var mu sync.Mutex
	consumed := map[string]int{}
	items := of(func(_ context.Context, item string) error {
		mu.Lock()
		defer mu.Unlock()
		consumed[item]++
		return nil
	}, "/q", "/q-locks")
	dry := invoke(t.Context(), strings.Fields("queue requeue /dead /q -n 1 --locks /locks --dry-run -o json"), environ...)
	if !cmp.Equal(stateCounts(dry.stdout), map[string]int{"held": 1}) || dry.code != CodeRefused {
		t.Errorf("dry run: %+v", dry)
	}
	got := invoke(t.Context(), strings.Fields("queue requeue /dead /q --all --locks /locks -o json"), environ...)
	if diff := cmp.Diff(map[string]int{"requeued": n - 1, "held": 1}, stateCounts(got.stdout)); diff != "" ||
		got.code != CodeRefused || !strings.Contains(got.stderr, "1 of the letters") {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	testenv.Eventually(t, func() bool { return len(children(t, client, "/q")) == 0 }, "the queue is consumed")
	freed()
	testenv.Eventually(t, func() bool { return len(children(t, client, "/dead")) == 0 }, "the letter is consumed")
	testclient.Must(t, letters.Close())
	testclient.Must(t, items.Close())
	want := map[string]int{}
	for i := 1; i < n; i++ {
		want[fmt.Sprintf("item-%03d", i)] = 1
	}
	if diff := cmp.Diff(want, consumed); diff != "" {
		t.Errorf("consumed (-want +got):\n%s", diff)
	}
}

func TestQueueRequeueKeepsTheACL(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	bury(t, client, 0)
	owner := zk.DigestACL(zk.PermAll, "alice", "wonder")
	for _, acl := range [][]zk.ACL{
		slices.Concat(owner, zk.WorldACL(zk.PermRead|zk.PermAdmin)),
		slices.Concat(owner, zk.WorldACL(zk.PermRead)), // the digest is hidden
		owner,
	} {
		_, err := client.Create().WithMode(builders.PersistentSequential).WithACL(acl...).
			ForPath(t.Context(), "/dead/queue-", []byte("x"))
		testclient.Must(t, err)
	}
	for i, code := range []int{CodeOK, CodeRefused, CodeRefused} {
		name := fmt.Sprintf("queue-%010d", i)
		got := invoke(t.Context(), []string{"queue", "requeue", "/dead", "/q", name}, environ...)
		if got.code != code {
			t.Errorf("%s: %+v, want code %d", name, got, code)
		}
	}
	testclient.Must(t, client.AddAuth("digest", []byte("alice:wonder")))
	acl, err := client.GetACL().ForPath(t.Context(), "/q/queue-0000000000")
	testclient.Must(t, err)
	want := slices.Concat(owner, zk.WorldACL(zk.PermRead|zk.PermAdmin))
	if diff := cmp.Diff(want, acl); diff != "" {
		t.Errorf("the ACL (-want +got):\n%s", diff)
	}
	if got := len(children(t, client, "/dead")); got != 2 {
		t.Errorf("%d letters are left, want 2", got)
	}
}
