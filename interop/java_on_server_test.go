package interop_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// target is a server that a story of Java Curator alone runs on.
type target struct {
	testenv.Instance
	t       *testing.T
	connect string
}

// onBothServers runs a story on Apache ZooKeeper and on the server in memory: it has to go the same way. Java has two
// clients, a and b.
func onBothServers(t *testing.T, story func(t *testing.T, j *peer, server *target)) {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	run := func(name string, server testenv.Instance, connect func(testing.TB) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := &target{Instance: server, t: t, connect: connect(t)}
			j := startJava(t)
			for _, client := range []string{"a", "b"} {
				j.start(client, on.connect)
			}
			story(t, j, on)
		})
	}
	run("real", testenv.Server(t), testenv.ConnectString)
	memory := curatortest.NewServerT(t)
	run("in memory", memory, func(testing.TB) string { return memory.ConnectString() })
}

// expire ends the session of a client.
func (s *target) expire(j *peer, client string) {
	s.t.Helper()
	var id int64
	j.must("sessionId", interop.Args{"client": client}, &id)
	if err := s.ExpireSession(id); err != nil {
		s.t.Fatal(err)
	}
}

// drop ends the connection of a client and keeps its session.
func (s *target) drop(j *peer, client string) {
	s.t.Helper()
	var id int64
	j.must("sessionId", interop.Args{"client": client}, &id)
	if err := s.DropConnection(id); err != nil {
		s.t.Fatal(err)
	}
}

// TestJavaLocksOnEitherServer has two clients of Java at one lock, of each kind that lets one in.
func TestJavaLocksOnEitherServer(t *testing.T) {
	t.Parallel()
	for kind, op := range map[string]string{
		"mutex": "mutexNew", "writeLock": "readWriteLockNew", "semaphoreMutex": "semaphoreMutexNew",
		"multiLock": "multiLockNew",
	} {
		t.Run(kind, func(t *testing.T) {
			onBothServers(t, func(t *testing.T, j *peer, server *target) {
				t.Helper()
				lock := func(name string) *object {
					j.must(op, interop.Args{
						"client": name, "name": name, "path": "/lock", "paths": []string{"/lock/one", "/lock/two"},
					}, nil)
					return &object{j: j, kind: kind, name: name}
				}
				a, b := lock("a"), lock("b")
				a.yes("Acquire", nil)
				if b.truth("Acquire", interop.Args{"timeoutMs": 50}) || b.truth("Held", nil) {
					t.Error("two hold it")
				}
				waiting := b.later("Acquire", nil)
				a.do("Release", nil, nil)
				waiting.done()
				b.yes("Held", nil)
				waiting = a.later("Acquire", interop.Args{"timeoutMs": 20_000})
				server.expire(j, "b")
				waiting.done()
				a.do("Release", nil, nil)
			})
		})
	}
}

func TestJavaReadWriteLockOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		lock := func(client string) (read, write *object) {
			j.must("readWriteLockNew", interop.Args{"client": client, "name": client, "path": "/lock"}, nil)
			return &object{j: j, kind: "readLock", name: client}, &object{j: j, kind: "writeLock", name: client}
		}
		readA, writeA := lock("a")
		readB, writeB := lock("b")
		readA.yes("Acquire", nil)
		readB.yes("Acquire", nil)
		path := j.text("readLockPath", interop.Args{"name": "a"})
		if !strings.HasPrefix(path, "/lock/_c_") || !strings.HasSuffix(path, "-__READ__0000000000") {
			t.Errorf("a reads as %s", path)
		}
		if writeB.truth("Acquire", interop.Args{"timeoutMs": 50}) {
			t.Error("a reader was let in to write")
		}
		readB.do("Release", nil, nil)
		writing := writeB.later("Acquire", nil)
		testenv.Eventually(t, func() bool {
			var nodes []string
			writeB.do("Participants", nil, &nodes)
			return len(nodes) == 1
		}, "b waits to write")
		readA.do("Release", nil, nil)
		writing.done()
		if readA.truth("Acquire", interop.Args{"timeoutMs": 50}) || writeA.truth("Acquire", interop.Args{"timeoutMs": 50}) {
			t.Error("a contender was let in beside a writer")
		}
		readB.yes("Acquire", nil) // a writer may read
		reading := readA.later("Acquire", nil)
		writeB.do("Release", nil, nil)
		reading.done() // and then is a reader
		if writeA.truth("Acquire", interop.Args{"timeoutMs": 50}) {
			t.Error("a writer was let in beside a reader")
		}
		readA.do("Release", nil, nil)
		readB.do("Release", nil, nil)
	})
}

func TestJavaSemaphoreOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, server *target) {
		t.Helper()
		acquire := func(o *object, leases, timeout int) (nodes []string) {
			t.Helper()
			o.do("Acquire", interop.Args{"leases": leases, "timeoutMs": timeout}, &nodes)
			return nodes
		}
		a := j.create("semaphore", "New", "a", interop.Args{"client": "a", "path": "/semaphore", "leases": 3})
		b := j.create("semaphore", "New", "b", interop.Args{"client": "b", "path": "/semaphore", "leases": 3})
		two, one := acquire(a, 2, -1), acquire(b, 1, -1)
		var nodes []string
		a.do("Participants", nil, &nodes)
		want := slices.Sorted(slices.Values(append(two, one...)))
		if slices.Sort(nodes); !slices.Equal(nodes, want) || len(want) != 3 {
			t.Errorf("participants %q of %q", nodes, want)
		}
		if got := acquire(b, 1, 50); got != nil {
			t.Errorf("a fourth lease: %q", got)
		}
		a.do("Release", interop.Args{"leases": two[:1]}, nil)
		if got := acquire(b, 1, 20_000); len(got) != 1 {
			t.Errorf("no lease that was returned: %q", got)
		}
		server.expire(j, "b")
		if got := acquire(a, 2, 20_000); len(got) != 2 {
			t.Errorf("no leases of a session that has ended: %q", got)
		}
		a.do("Release", nil, nil)
	})
}

func TestJavaSemaphoreWithACountOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		a := j.create("count", "Start", "a", interop.Args{"client": "a", "path": "/count", "seed": 1})
		b := j.create("count", "Start", "b", interop.Args{"client": "b", "path": "/count", "seed": 1})
		read := func(o *object) (count interop.Count) {
			o.do("Get", nil, &count)
			return count
		}
		semaphore := j.create("semaphore", "New", "s", interop.Args{"client": "a", "path": "/semaphore", "count": "a"})
		var first, second []string
		semaphore.do("Acquire", interop.Args{"timeoutMs": 20_000}, &first)
		semaphore.do("Acquire", interop.Args{"timeoutMs": 50}, &second)
		if len(first) != 1 || second != nil {
			t.Errorf("leases %q and %q of one", first, second)
		}
		stale := read(a)
		read(b)
		b.yes("TrySet", interop.Args{"value": 2})
		if ev := a.event("counted"); ev.Item != "2" {
			t.Errorf("counted %s", ev.Item)
		}
		if a.truth("TrySet", interop.Args{"value": 3}) {
			t.Errorf("set over what was read before: %+v, %+v", stale, read(a))
		}
		if got := read(a); got.Value != 2 || got.Version != stale.Version+1 {
			t.Errorf("%+v after %+v", got, stale)
		}
		semaphore.do("Acquire", interop.Args{"timeoutMs": 20_000}, &second)
		if len(second) != 1 {
			t.Error("no second lease of two")
		}
		a.do("Set", interop.Args{"value": -7}, nil)
		for read(b).Value != -7 {
			b.event("counted")
		}
		semaphore.do("Release", nil, nil)
	})
}

func TestJavaLatchOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, server *target) {
		t.Helper()
		start := func(name string) *object {
			return j.create("latch", "Start", name,
				interop.Args{"client": name, "path": "/latch", "participant": "id of " + name})
		}
		participants := func(o *object, want ...interop.Participant) {
			t.Helper()
			testenv.Eventually(t, func() bool {
				var got []interop.Participant
				o.do("Participants", nil, &got)
				return slices.Equal(got, want)
			}, fmt.Sprint(want, " take part"))
		}
		a := start("a")
		a.event("isLeader")
		b := start("b")
		participants(a, interop.Participant{ID: "id of a", Leader: true}, interop.Participant{ID: "id of b"})
		if b.truth("Await", interop.Args{"timeoutMs": 50}) || b.truth("HasLeadership", nil) {
			t.Error("two lead")
		}
		server.expire(j, "a")
		b.event("isLeader")
		a.event("notLeader")
		// Should b leave before a is back the container of the latch may vanish, and a of Java 5.4.0 never leads again.
		participants(b, interop.Participant{ID: "id of b", Leader: true}, interop.Participant{ID: "id of a"})
		b.do("Close", interop.Args{"mode": "NOTIFY_LEADER"}, nil)
		b.event("notLeader")
		a.yes("Await", interop.Args{"timeoutMs": 20_000})
		a.event("isLeader")
		a.do("Close", nil, nil)
	})
}

func TestJavaSelectorOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, server *target) {
		t.Helper()
		start := func(name string) *object {
			return j.create("selector", "Start", name, interop.Args{
				"client": name, "path": "/selector", "participant": "id of " + name, "autoRequeue": true,
			})
		}
		both := func() {
			t.Helper()
			testenv.Eventually(t, func() bool {
				var got []interop.Participant
				j.must("selectorParticipants", interop.Args{"name": "a"}, &got)
				return len(got) == 2
			}, "both stand in line")
		}
		a := start("a")
		a.event("taken")
		b := start("b")
		both()
		if leader := j.text("selectorLeader", interop.Args{"name": "b"}); leader != "id of a" {
			t.Errorf("leader %s", leader)
		}
		a.do("Relinquish", nil, nil)
		a.event("released")
		b.event("taken")
		both()
		b.do("Interrupt", nil, nil)
		b.event("released")
		a.event("taken")
		both()
		server.expire(j, "a")
		b.event("taken")
		a.event("released")
		both()
		b.do("Close", nil, nil)
		b.event("released")
		a.event("taken")
		a.do("Close", nil, nil)
	})
}

// consumed waits for items of a queue.
func consumed(o *object, n int) (items []string) {
	o.j.t.Helper()
	for range n {
		items = append(items, o.event("item").Item)
	}
	return items
}

func TestJavaQueueOnEitherServer(t *testing.T) {
	t.Parallel()
	for name, lockPath := range map[string]any{"plain": nil, "with locks": "/locks"} {
		t.Run(name, func(t *testing.T) {
			onBothServers(t, func(t *testing.T, j *peer, server *target) {
				t.Helper()
				const items = 200
				put := j.create("queue", "Start", "put", interop.Args{"client": "a", "path": "/queue", "lockPath": lockPath})
				take := j.create("queue", "Start", "take", interop.Args{
					"client": "b", "path": "/queue", "lockPath": lockPath, "consume": true,
				})
				var want []string
				for i := range items {
					want = append(want, fmt.Sprint(i))
					put.do("Put", interop.Args{"item": fmt.Sprint(i)}, nil)
				}
				put.yes("Flush", nil)
				put.do("PutMulti", interop.Args{"items": []string{"x", "y"}}, nil)
				if diff := cmp.Diff(append(want, "x", "y"), consumed(take, items+2)); diff != "" {
					t.Errorf("consumed (-put)\n%s", diff)
				}
				// It goes on after the loss of the connection.
				server.drop(j, "b")
				j.awaitState("b", "SUSPENDED")
				put.do("Put", interop.Args{"item": "last"}, nil)
				if got := consumed(take, 1); got[0] != "last" {
					t.Errorf("consumed %s", got[0])
				}
				put.do("Close", nil, nil)
				take.do("Close", nil, nil)
			})
		})
	}
}

func TestJavaQueueThatRequeuesOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		queue := j.create("queue", "Start", "q", interop.Args{
			"client": "a", "path": "/queue", "lockPath": "/locks", "errorMode": "REQUEUE", "consume": true, "failures": 2,
		})
		queue.do("Put", interop.Args{"item": "x"}, nil)
		queue.event("refused")
		queue.event("refused")
		queue.event("item")
		queue.do("Close", nil, nil)
	})
}

func TestJavaPriorityQueueOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		start := interop.Args{"client": "a", "path": "/queue"}
		put := j.create("priorityQueue", "Start", "put", start)
		for _, priority := range []int{5, -1, 7, math.MaxInt32, 0, math.MinInt32, 5} {
			put.do("Put", interop.Args{"item": fmt.Sprint(priority), "priority": priority}, nil)
		}
		put.do("PutMulti", interop.Args{"items": []string{"3a", "3b"}, "priority": 3}, nil)
		put.yes("Flush", nil)
		start["consume"] = true
		take := j.create("priorityQueue", "Start", "take", start)
		want := fmt.Sprint(math.MinInt32, " -1 0 3a 3b 5 5 7 ", math.MaxInt32)
		if got := strings.Join(consumed(take, 9), " "); got != want {
			t.Errorf("consumed %s, not %s", got, want)
		}
		put.do("Close", nil, nil)
		take.do("Close", nil, nil)
	})
}

func TestJavaDelayQueueOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		due := time.Now().Add(time.Second)
		put := j.create("delayQueue", "Start", "put", interop.Args{"client": "a", "path": "/queue"})
		put.do("Put", interop.Args{"item": "then", "epochMs": due.UnixMilli()}, nil)
		put.do("PutMulti", interop.Args{"items": []string{"x", "y"}, "epochMs": due.Add(-time.Second).UnixMilli()}, nil)
		put.yes("Flush", nil)
		take := j.create("delayQueue", "Start", "take", interop.Args{"client": "b", "path": "/queue", "consume": true})
		if got := consumed(take, 3); !slices.Equal(got, []string{"x", "y", "then"}) {
			t.Errorf("consumed %q", got)
		}
		if early := time.Until(due); early > time.Millisecond { // Java counts whole milliseconds
			t.Errorf("consumed %v too early", early)
		}
		put.do("Close", nil, nil)
		take.do("Close", nil, nil)
	})
}

func TestJavaIDQueueOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		put := j.create("idQueue", "Start", "put", interop.Args{"client": "a", "path": "/queue"})
		for _, item := range []string{"a", "b", "c"} {
			put.do("Put", interop.Args{"item": item, "itemId": "id of " + item}, nil)
		}
		put.yes("Flush", nil)
		var removed int
		if put.do("Remove", interop.Args{"itemId": "id of b"}, &removed); removed != 1 {
			t.Errorf("removed %d", removed)
		}
		take := j.create("idQueue", "Start", "take", interop.Args{"client": "b", "path": "/queue", "consume": true})
		if got := consumed(take, 2); got[0] != "a" || got[1] != "c" {
			t.Errorf("consumed %q", got)
		}
		put.do("Close", nil, nil)
		take.do("Close", nil, nil)
	})
}

func TestJavaSimpleQueueOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		a := j.create("simpleQueue", "New", "a", interop.Args{"client": "a", "path": "/queue"})
		b := j.create("simpleQueue", "New", "b", interop.Args{"client": "b", "path": "/queue"})
		var got interop.Bytes
		if b.do("Poll", nil, &got); got != nil {
			t.Errorf("polled %q of an empty queue", got)
		}
		if b.do("Take", interop.Args{"timeoutMs": 50}, &got); got != nil {
			t.Errorf("took %q of an empty queue", got)
		}
		taking := j.async("simpleQueueTake", interop.Args{"name": "b", "timeoutMs": 20_000}, &got)
		a.yes("Offer", interop.Args{"data": interop.Bytes("one")})
		if err := <-taking; err != nil || string(got) != "one" {
			t.Errorf("took %q, %v", got, err)
		}
		a.yes("Offer", interop.Args{"data": interop.Bytes("two")})
		for _, op := range []string{"Peek", "Element", "Poll"} {
			if b.do(op, nil, &got); string(got) != "two" {
				t.Errorf("%s gives %q", op, got)
			}
		}
	})
}

func TestJavaCacheOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, server *target) {
		t.Helper()
		// The cache's client connects through a proxy, which the test cuts.
		proxy := curatortest.NewProxyT(t, server.Addr())
		j.start("proxied", strings.Replace(server.connect, server.Addr(), proxy.Addr(), 1))
		t.Cleanup(func() { j.must("close", interop.Args{"client": "proxied"}, nil) }) // while there is the proxy

		do := func(cmd, path, data string) {
			t.Helper()
			j.must(cmd, interop.Args{"client": "a", "path": path, "data": interop.Bytes(data)}, nil)
		}
		cache := &object{j: j, kind: "cache", name: "c"}
		expect := func(kind string, want ...string) { // path, old data and data
			t.Helper()
			var got []string
			for range want {
				ev := cache.event(kind)
				got = append(got, fmt.Sprintf("%s %s>%s", ev.Path, ev.OldData, ev.Data))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", kind, diff)
			}
		}
		holds := func(want map[string]string) {
			t.Helper()
			var dump map[string]interop.Bytes
			cache.do("Dump", nil, &dump)
			got := make(map[string]string)
			for path, data := range dump {
				got[path] = string(data)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in the cache (-want +got)\n%s", diff)
			}
		}

		do("create", "/tree", "")
		do("create", "/tree/a", "1")
		do("create", "/tree/a/b", "2")
		do("create", "/treetop", "not in it")
		cache.do("Start", interop.Args{"client": "proxied", "path": "/tree"}, nil)
		cache.event("initialized")
		expect("created", "/tree >", "/tree/a >1", "/tree/a/b >2")
		holds(map[string]string{"/tree": "", "/tree/a": "1", "/tree/a/b": "2"})

		do("create", "/tree/a/b/c", "3")
		expect("created", "/tree/a/b/c >3")
		do("setData", "/tree/a", "4")
		expect("changed", "/tree/a 1>4")
		do("delete", "/tree/a/b/c", "")
		expect("deleted", "/tree/a/b/c 3>")

		// What happens while the cache has no connection it finds when it has one again, and when it has another session.
		restore := proxy.Faults().RefuseConnects()
		proxy.Faults().CutAll()
		j.awaitState("proxied", "SUSPENDED")
		do("delete", "/tree/a/b", "")
		do("setData", "/tree/a", "5")
		do("create", "/tree/d", "6")
		restore()
		expect("created", "/tree/d >6")
		expect("changed", "/tree/a 4>5")
		expect("deleted", "/tree/a/b 2>")
		holds(map[string]string{"/tree": "", "/tree/a": "5", "/tree/d": "6"})

		server.expire(j, "proxied")
		j.awaitState("proxied", "LOST")
		do("create", "/tree/e", "7")
		expect("created", "/tree/e >7")
		j.awaitState("proxied", "RECONNECTED")
		do("setData", "/tree/e", "8")
		expect("changed", "/tree/e 7>8")
		cache.do("Close", nil, nil)
	})
}

func TestJavaBarriersOnEitherServer(t *testing.T) {
	onBothServers(t, func(t *testing.T, j *peer, _ *target) {
		t.Helper()
		a := j.create("barrier", "New", "a", interop.Args{"client": "a", "path": "/barrier"})
		b := j.create("barrier", "New", "b", interop.Args{"client": "b", "path": "/barrier"})
		a.do("Set", nil, nil)
		if b.truth("Wait", interop.Args{"timeoutMs": 50}) {
			t.Error("the barrier that is set lets through")
		}
		waiting := b.later("Wait", nil)
		a.do("Remove", nil, nil)
		waiting.done()
		b.yes("Wait", nil)

		members := interop.Args{"members": 2, "path": "/double"}
		members["client"] = "a"
		a = j.create("doubleBarrier", "New", "a", members)
		members["client"] = "b"
		b = j.create("doubleBarrier", "New", "b", members)
		for _, op := range []string{"Enter", "Leave"} {
			first := a.later(op, nil)
			b.yes(op, nil)
			first.done()
		}
	})
}
