package recognize_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/zkpath"
)

var update = flag.Bool("update", false, "record the nodes of Java Curator in testdata again")

func TestMain(m *testing.M) { testenv.Main(m) }

// due is the due time of an item.
var due = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// common is what is found in the nodes that both makers leave, in lines of: recipe, path, state, node, the node that it
// waits for, id, address. A name has no protection; * is a UUID.
const common = `
delay-queue /delay queued queue-|3BB2CC3D800|0000000000 - 2100-01-01T00:00:00Z -
members /group member a - a one
members /group member b - b two
id-queue /ids queued queue-|x_1|0000000000 - x_1 -
latch /latch leads latch-0000000000 - - one
latch /latch waits latch-0000000001 latch-0000000000 - two
latch /latch waits latch-0000000002 latch-0000000001 - three
lock /mutex holds lock-0000000000 - - one
lock /mutex waits lock-0000000001 lock-0000000000 - two
lock /mutex waits lock-0000000002 lock-0000000001 - three
double-barrier /open entered * - - *
double-barrier /open entered * - - *
priority-queue /priority queued queue-0FFFFFFF60000000001 - -10 -
priority-queue /priority queued queue-1000000070000000000 - 7 -
queue /queue queued queue-0000000000 - - -
queue /queue queued queue-0000000001 - - -
queue-locks /queue-locks consumed queue-0000000000 - - *
rwlock /rw reads __READ__0000000000 - - one
rwlock /rw reads __READ__0000000001 - - two
rwlock /rw waits __WRIT__0000000002 __READ__0000000001 - three
rwlock /rw waits __READ__0000000003 __WRIT__0000000002 - four
lock /selector holds lock-0000000000 - - one
lock /selector waits lock-0000000001 lock-0000000000 - two
semaphore /semaphore holds lease-0000000000 - - lease
semaphore /semaphore holds lease-0000000001 - - lease
service /services/shop member i-1 - i-1 10.0.0.1:8080
service /services/shop member i-2 - i-2 10.0.0.2:8080
double-barrier /shut waits * - - *
simple-queue /simple queued qn-0000000000 - - -
simple-queue /simple queued qn-0000000001 - - -
`

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// describe returns the lines of participants. Default addresses, which differ from host to host, are *.
func describe(found []recognize.Participant, host string) string {
	lines := "\n"
	short := func(name string) string {
		if name = zkpath.Normalize(zkpath.Node(name)); name == "" {
			return "-"
		}
		return uuids.ReplaceAllString(name, "*")
	}
	or := func(text string) string {
		switch {
		case text == "":
			return "-"
		case text == host, uuids.MatchString(text): // Go has its consumer in the lock of an item
			return "*"
		}
		return text
	}
	for _, p := range found {
		lines += fmt.Sprintf("%s %s %s %s %s %s %s\n", p.Recipe, p.Path, p.State, short(p.Node), short(p.For), or(p.ID),
			or(p.Address))
	}
	return lines
}

// read returns the listing of all nodes.
func read(t *testing.T, client *framework.Client) (listing []recognize.Node) {
	t.Helper()
	nodes, err := tree.Read(t.Context(), client, "/", tree.Options{Data: true, Depth: -1})
	testclient.Must(t, err)
	for _, path := range nodes.Paths() {
		n := nodes[path]
		listing = append(listing, recognize.Node{Path: n.Path, Data: n.Data, Stat: *n.Stat})
	}
	return listing
}

// site is where a test makes nodes.
type site struct {
	t      *testing.T
	server *curatortest.Server
	client *framework.Client
	ctx    context.Context
	wait   sync.WaitGroup
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, server: curatortest.NewServerT(t)}
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.client = testclient.Connect(t, s.server.ConnectString(), framework.WithDefaultData([]byte("host")))
	t.Cleanup(func() {
		cancel()
		s.wait.Wait()
	})
	return s
}

// begin starts what waits until the end of the test, and returns when a path has so many children.
func (s *site) begin(path string, children int, fn func(ctx context.Context)) {
	s.t.Helper()
	s.wait.Go(func() { fn(s.ctx) })
	s.await(path, children)
}

func (s *site) await(path string, children int) {
	s.t.Helper()
	s.server.EventuallyT(s.t, fmt.Sprintf("%d children of %s", children, path), func() bool {
		return len(s.server.Children(path)) == children
	})
}

// ended fails the test if what waits has ended for another reason than the end of the test.
func (s *site) ended(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.t.Errorf("a wait has ended: %v", err)
	}
}

func TestFindsWhatGoMakes(t *testing.T) {
	s := newSite(t)
	ctx := s.ctx
	must := func(err error) {
		t.Helper()
		testclient.Must(t, err)
	}
	lock := func(path string, n int, newLock func(data locks.MutexOption) locks.InterProcessLock, names ...string) {
		t.Helper()
		for i, name := range names {
			l := newLock(locks.WithLockNodeData([]byte(name)))
			if i < n {
				_, err := l.Acquire(locks.WithOwner(ctx))
				must(err)
				continue
			}
			s.begin(path, i+1, func(ctx context.Context) {
				_, err := l.Acquire(locks.WithOwner(ctx))
				s.ended(ctx, err)
			})
		}
	}
	lock("/mutex", 1, func(data locks.MutexOption) locks.InterProcessLock {
		return locks.NewInterProcessMutex(s.client, "/mutex", data)
	}, "one", "two", "three")
	var sides int
	lock("/rw", 2, func(data locks.MutexOption) locks.InterProcessLock {
		rw := locks.NewInterProcessReadWriteLock(s.client, "/rw", data)
		if sides++; sides == 3 {
			return rw.WriteLock()
		}
		return rw.ReadLock()
	}, "one", "two", "three", "four")
	rw := locks.NewInterProcessReadWriteLock(s.client, "/downgrade")
	owner := locks.WithOwner(ctx)
	_, err := rw.WriteLock().Acquire(owner)
	must(err)
	_, err = rw.ReadLock().Acquire(owner)
	must(err)

	newSemaphore := func() *locks.InterProcessSemaphoreV2 {
		return locks.NewInterProcessSemaphoreV2(s.client, "/semaphore", 2, locks.WithLeaseData([]byte("lease")))
	}
	_, err = newSemaphore().AcquireN(ctx, 2)
	must(err)
	acquire := func(ctx context.Context) {
		_, err := newSemaphore().Acquire(ctx)
		s.ended(ctx, err)
	}
	s.begin("/semaphore/locks", 1, acquire)
	s.begin("/semaphore/locks", 2, acquire)

	for i, id := range []string{"one", "two", "three"} {
		latch := leader.NewLeaderLatch(s.client, "/latch", leader.WithID(id))
		must(latch.Start())
		t.Cleanup(func() { must(latch.Close()) })
		s.await("/latch", i+1)
	}
	for i, id := range []string{"one", "two"} {
		selector := leader.NewLeaderSelector(s.client, "/selector", func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, leader.WithID(id))
		must(selector.Start())
		t.Cleanup(func() { must(selector.Close()) })
		s.await("/selector", i+1)
	}

	// A consumer has claimed the first item.
	claimed := make(chan struct{}, 2)
	consumer := func(ctx context.Context, _ string) error {
		claimed <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	builder := func(c queue.Consumer[string], path string) queue.Builder[string] {
		return queue.NewBuilder(s.client, c, codec.Text{}, path)
	}
	start := func(q interface {
		Start() error
		Close() error
	}, err error,
	) {
		t.Helper()
		must(err)
		must(q.Start())
		t.Cleanup(func() { _ = q.Close() }) // a consumer's says that its item is not settled
	}
	producer, err := builder(nil, "/queue").BuildQueue()
	start(producer, err)
	must(producer.Put(ctx, "first"))
	must(producer.Put(ctx, "second"))
	consuming, err := builder(consumer, "/queue").LockPath("/queue-locks").FinalFlushTime(time.Millisecond).BuildQueue()
	start(consuming, err)
	<-claimed
	priorities, err := builder(nil, "/priority").BuildPriorityQueue(0)
	start(priorities, err)
	must(priorities.Put(ctx, "later", 7))
	must(priorities.Put(ctx, "sooner", -10))
	delays, err := builder(nil, "/delay").BuildDelayQueue()
	start(delays, err)
	must(delays.Put(ctx, "item", due))
	ids, err := builder(nil, "/ids").BuildIDQueue()
	start(ids, err)
	must(ids.Put(ctx, "item", "x/1"))
	simple := queue.NewSimpleDistributedQueue(s.client, "/simple")
	must(simple.Offer(ctx, []byte("a")))
	must(simple.Offer(ctx, []byte("b")))

	s.begin("/shut", 1, func(ctx context.Context) {
		s.ended(ctx, barrier.NewDistributedDoubleBarrier(s.client, "/shut", 2).Enter(ctx))
	})
	var entering sync.WaitGroup
	for range 2 {
		entering.Go(func() {
			if err := barrier.NewDistributedDoubleBarrier(s.client, "/open", 2).Enter(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	entering.Wait()
	for id, data := range map[string]string{"a": "one", "b": "two"} {
		m := nodes.NewGroupMember(s.client, "/group", id, []byte(data))
		must(m.Start())
		t.Cleanup(func() { must(m.Close(context.Background())) })
	}
	s.await("/group", 2)
	services := discovery.New[struct{}](s.client, "/services")
	must(services.Start())
	t.Cleanup(func() { must(services.Close(context.Background())) })
	for i, address := range []string{"10.0.0.1", "10.0.0.2"} {
		in := discovery.NewServiceInstance[struct{}]("shop", address, 8080)
		in.ID = fmt.Sprint("i-", i+1)
		must(services.Register(ctx, in))
	}

	check(t, read(t, s.client), "host", map[string]string{
		"/downgrade": `
rwlock /downgrade writes __WRIT__0000000000 - - *
rwlock /downgrade reads __READ__0000000000 - - *
`,
		"/semaphore": `
semaphore /semaphore holds lease-0000000000 - - lease
semaphore /semaphore holds lease-0000000001 - - lease
semaphore /semaphore waits lock-0000000001 - - *
semaphore /semaphore waits lock-0000000002 lock-0000000001 - *
`,
	})
}

// check compares what is found with what both makers have in common, and with what is of one maker, by path.
func check(t *testing.T, listing []recognize.Node, host string, own map[string]string) {
	t.Helper()
	found := recognize.Find(listing)
	var shared []recognize.Participant
	byPath := map[string][]recognize.Participant{}
	for _, p := range found {
		if _, ok := own[p.Path]; ok {
			byPath[p.Path] = append(byPath[p.Path], p)
		} else {
			shared = append(shared, p)
		}
		if p.Since.IsZero() || p.Token == 0 || (p.Session == 0) != (p.State == recognize.Queued) {
			t.Errorf("participant %+v", p)
		}
	}
	want := regexp.MustCompile(`(?m)^\S+ (\S+) .*\n`).ReplaceAllStringFunc(common, func(line string) string {
		for path := range own {
			if bytes.Contains([]byte(line), []byte(" "+path+" ")) {
				return ""
			}
		}
		return line
	})
	if diff := cmp.Diff(want, describe(shared, host)); diff != "" {
		t.Errorf("common nodes (-want +got):\n%s", diff)
	}
	for path, want := range own {
		if diff := cmp.Diff(want, describe(byPath[path], host)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

const recorded = "testdata/java.jsonl"

// ofJava is what is found in the nodes of Java Curator 5.4.0 alone: its reader that was the writer has a number of its
// own.
var ofJava = map[string]string{
	"/downgrade": `
rwlock /downgrade writes __WRIT__0000000000 - - *
rwlock /downgrade waits __READ__0000000001 __WRIT__0000000000 - *
`,
	"/semaphore": `
semaphore /semaphore holds lease-0000000000 - - lease
semaphore /semaphore holds lease-0000000001 - - lease
semaphore /semaphore waits lease-0000000002 - - lease
semaphore /semaphore waits lock-0000000003 lock-0000000002 - *
`,
}

func TestFindsWhatJavaHasMade(t *testing.T) {
	text, err := os.ReadFile(recorded)
	testclient.Must(t, err)
	var listing []recognize.Node
	var host string
	for line := range bytes.Lines(text) {
		var n recognize.Node
		testclient.Must(t, json.Unmarshal(line, &n))
		listing = append(listing, n)
		if n.Path == "/host" {
			host = string(n.Data)
		}
	}
	check(t, listing, host, ofJava)
}

// TestFindsWhatJavaMakes makes the nodes that TestFindsWhatJavaHasMade reads, with -update.
func TestFindsWhatJavaMakes(t *testing.T) {
	testenv.RequireReal(t) // of Java: the server is that in memory
	s := newSite(t)
	peer, err := interop.Start(t.Context(), interop.Curator)
	testclient.Must(t, err)
	t.Cleanup(func() { testclient.Must(t, peer.Close()) })
	ctx := testenv.Context(t)
	call := func(cmd string, args interop.Args) {
		t.Helper()
		if err := peer.Call(ctx, cmd, args, nil); err != nil {
			t.Fatal(err)
		}
	}
	// waits calls what waits until the end of Java.
	waits := func(cmd string, args interop.Args, path string, children int) {
		t.Helper()
		go func() { _ = peer.Call(ctx, cmd, args, nil) }() // it ends with the process
		s.await(path, children)
	}
	data := func(text string) interop.Bytes { return interop.Bytes(text) }
	call("start", interop.Args{"connect": s.server.ConnectString(), "sessionTimeoutMs": 20_000})
	call("create", interop.Args{"path": "/host", "mode": "PERSISTENT"}) // with the default data

	for i, name := range []string{"one", "two", "three"} {
		call("mutexNew", interop.Args{"name": name, "path": "/mutex", "lockData": data(name)})
		waits("mutexAcquire", interop.Args{"name": name, "timeoutMs": -1}, "/mutex", i+1)
	}
	for i, name := range []string{"one", "two", "three", "four"} {
		call("readWriteLockNew", interop.Args{"name": "rw" + name, "path": "/rw", "lockData": data(name)})
		side := "readLock"
		if i == 2 {
			side = "writeLock"
		}
		waits(side+"Acquire", interop.Args{"name": "rw" + name, "timeoutMs": -1}, "/rw", i+1)
	}
	call("readWriteLockNew", interop.Args{"name": "downgrade", "path": "/downgrade"})
	call("writeLockAcquire", interop.Args{"name": "downgrade", "timeoutMs": -1})
	call("readLockAcquire", interop.Args{"name": "downgrade", "timeoutMs": -1})
	call("semaphoreNew", interop.Args{"name": "semaphore", "path": "/semaphore", "leases": 2, "data": data("lease")})
	call("semaphoreAcquire", interop.Args{"name": "semaphore", "leases": 2, "timeoutMs": 20_000})
	waits("semaphoreAcquire", interop.Args{"name": "semaphore", "timeoutMs": 600_000}, "/semaphore/leases", 3)
	waits("semaphoreAcquire", interop.Args{"name": "semaphore", "timeoutMs": 600_000}, "/semaphore/locks", 2)
	for i, id := range []string{"one", "two", "three"} {
		call("latchStart", interop.Args{"name": id, "path": "/latch", "participant": id})
		s.await("/latch", i+1)
	}
	for i, id := range []string{"one", "two"} {
		call("selectorStart", interop.Args{"name": id, "path": "/selector", "participant": id})
		s.await("/selector", i+1)
	}
	call("queueStart", interop.Args{"name": "producer", "path": "/queue"})
	call("queuePut", interop.Args{"name": "producer", "item": "hold first"})
	call("queuePut", interop.Args{"name": "producer", "item": "second"})
	s.await("/queue", 2)
	call("queueStart", interop.Args{"name": "consumer", "path": "/queue", "lockPath": "/queue-locks", "consume": true})
	s.await("/queue-locks", 1)
	call("priorityQueueStart", interop.Args{"name": "q", "path": "/priority"})
	call("priorityQueuePut", interop.Args{"name": "q", "item": "later", "priority": 7})
	s.await("/priority", 1)
	call("priorityQueuePut", interop.Args{"name": "q", "item": "sooner", "priority": -10})
	call("delayQueueStart", interop.Args{"name": "q", "path": "/delay"})
	call("delayQueuePut", interop.Args{"name": "q", "item": "item", "epochMs": due.UnixMilli()})
	call("idQueueStart", interop.Args{"name": "q", "path": "/ids"})
	call("idQueuePut", interop.Args{"name": "q", "item": "item", "itemId": "x/1"})
	call("simpleQueueNew", interop.Args{"name": "q", "path": "/simple"})
	call("simpleQueueOffer", interop.Args{"name": "q", "data": data("a")})
	call("simpleQueueOffer", interop.Args{"name": "q", "data": data("b")})
	call("doubleBarrierNew", interop.Args{"name": "shut", "path": "/shut", "members": 2})
	waits("doubleBarrierEnter", interop.Args{"name": "shut", "timeoutMs": -1}, "/shut", 1)
	call("doubleBarrierNew", interop.Args{"name": "open1", "path": "/open", "members": 2})
	call("doubleBarrierNew", interop.Args{"name": "open2", "path": "/open", "members": 2})
	waits("doubleBarrierEnter", interop.Args{"name": "open1", "timeoutMs": -1}, "/open", 1)
	call("doubleBarrierEnter", interop.Args{"name": "open2", "timeoutMs": -1})
	call("groupMemberNew", interop.Args{"name": "a", "path": "/group", "member": "a", "data": data("one")})
	call("groupMemberNew", interop.Args{"name": "b", "path": "/group", "member": "b", "data": data("two")})
	call("discoveryStart", interop.Args{"name": "d", "path": "/services", "services": []string{"shop"}})
	for i, address := range []string{"10.0.0.1", "10.0.0.2"} {
		call("discoveryRegister", interop.Args{"name": "d", "instance": map[string]any{
			"name": "shop", "id": fmt.Sprint("i-", i+1), "address": address, "port": 8080,
			"registrationTimeUTC": 1_700_000_000_000, "payload": map[string]any{},
		}})
	}
	for path, n := range map[string]int{"/priority": 2, "/delay": 1, "/ids": 1, "/group": 2, "/open": 3} {
		s.await(path, n)
	}

	listing := read(t, s.client)
	host, _ := s.server.Node("/host")
	check(t, listing, string(host.Data), ofJava)
	if *update {
		var text bytes.Buffer
		for _, n := range listing {
			testclient.Must(t, json.NewEncoder(&text).Encode(n))
		}
		testclient.Must(t, os.MkdirAll(filepath.Dir(recorded), 0o755))
		testclient.Must(t, os.WriteFile(recorded, text.Bytes(), 0o644))
	}
}

// TestFindOrdersNumbersBeyondTheLargest is about a directory that has had more than 2^31 children.
func TestFindOrdersNumbersBeyondTheLargest(t *testing.T) {
	var listing []recognize.Node
	for i, number := range []string{"2147483646", "2147483647", "-2147483648", "-2147483647"} {
		listing = append(listing, recognize.Node{
			Path: "/l/_c_" + zkpath.NewProtectionID() + "-lock-" + number,
			Stat: zk.Stat{EphemeralOwner: 7, Czxid: int64(i + 1)},
		})
	}
	want := slices.Clone(listing)
	slices.Reverse(listing)
	for i, p := range recognize.Find(listing) {
		if p.Token != want[i].Stat.Czxid || (p.State == recognize.Holds) != (i == 0) {
			t.Errorf("participant %d: %+v", i, p)
		}
	}
}

func TestFindLeavesOutOtherNodes(t *testing.T) {
	for path, n := range map[string]recognize.Node{
		"a persistent lock":           {Path: "/l/lock-0000000001"},
		"a name without a number":     {Path: "/l/lock-order"},
		"a short number":              {Path: "/q/queue-7"},
		"a shard":                     {Path: "/q/queue-" + zkpath.NewProtectionID()},
		"JSON of another kind":        {Path: "/s/x", Data: []byte(`{"name":"x"}`)},
		"an instance with other name": {Path: "/s/x", Data: []byte(`{"name":"s","id":"y","registrationTimeUTC":1}`)},
		"no JSON":                     {Path: "/s/x", Data: []byte(`{`)},
		"the node of a barrier":       {Path: "/barrier"},
		"a fence":                     {Path: "/locks/fence-1", Stat: zk.Stat{EphemeralOwner: 7}},
	} {
		if found := recognize.Find([]recognize.Node{n}); len(found) > 0 {
			t.Errorf("%s: %+v", path, found)
		}
	}
}

// TestFindInstanceAsDiscoveryReadsIt has what Jackson takes for an instance, and so package discovery too.
func TestFindInstanceAsDiscoveryReadsIt(t *testing.T) {
	for name, test := range map[string]struct{ node, data, address, note string }{
		"no registration": {"x", `{"name":"s","id":"x","address":"h","port":1}`, "h:1", ""},
		"no name":         {"x", `{"id":"x","address":"h"}`, "h", ""},
		"a number":        {"7", `{"name":"s","id":7,"port":"80"}`, ":80", ""},
		"space in front":  {"x", "\n {\"name\":\"s\",\"id\":\"x\"}", "", ""},
		"sequential": {
			"x0000000003", `{"name":"s","id":"x","address":"h","serviceType":"DYNAMIC_SEQUENTIAL"}`, "h", "",
		},
		"a TLS port": {"x", `{"name":"s","id":"x","address":"h","sslPort":443}`, "h:443", ""},
		"two ports":  {"x", `{"name":"s","id":"x","address":"h","port":0,"sslPort":443}`, "h:443", ""},
		"disabled":   {"x", `{"name":"s","id":"x","enabled":false}`, "", "disabled"},
		"any payload": {
			"x", `{"name":"s","id":"x","payload":["com.acme.Meta",{"a":1}],"unknown":[1]}`, "", "",
		},
	} {
		node := recognize.Node{Path: "/s/" + test.node, Data: []byte(test.data)}
		found := recognize.Find([]recognize.Node{node})
		if len(found) != 1 || found[0].Recipe != recognize.Service || found[0].Address != test.address ||
			found[0].Note != test.note {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestInstancesWhereServicesAre(t *testing.T) {
	var nodes []recognize.Node
	for path, data := range map[string]string{
		"/s/a/1": `{"address":"h"}`, // says where it is
		"/s/a/2": `{"port":1}`, "/s/a/3": `{"sslPort":1}`, "/s/a/4": `{"uriSpec":"{scheme}://h"}`,
		"/s/a/copy": `{"name":"a","id":"1"}`, // of another node
		"/s/a/own":  `{"id":"own"}`,
		"/s/b-c":    `{"address":"h"}`,
		"/s/a/5":    `{"name":"b","id":"1"}`, // says neither
		"/s/a/6":    `{}`, "/s/a/7": `[]`, "/s/a/8": "", "/s/a": "10.0.0.1", "/": "{",
	} {
		nodes = append(nodes, recognize.Node{Path: path, Data: []byte(data)})
	}
	var got []string
	for _, p := range recognize.Instances(nodes) {
		got = append(got, zkpath.Join(p.Path, p.Node))
	}
	want := []string{"/s/a/1", "/s/a/2", "/s/a/3", "/s/a/4", "/s/a/copy", "/s/a/own", "/s/b-c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecipesHasAllOfFind(t *testing.T) {
	source, err := os.ReadFile("recognize.go")
	testclient.Must(t, err)
	var names []string
	for _, found := range regexp.MustCompile(`Recipe += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, found[1])
	}
	if diff := cmp.Diff(names, recognize.Recipes()); diff != "" || len(names) == 0 {
		t.Errorf("(-constants +names):\n%s", diff)
	}
}

func TestFindSeesRevocations(t *testing.T) {
	found := recognize.Find([]recognize.Node{
		{Path: "/l/lock-0000000001", Data: []byte("__REVOKE__"), Stat: zk.Stat{EphemeralOwner: 7}},
	})
	if len(found) != 1 || found[0].Note != "asked to release" || found[0].Address != "" {
		t.Errorf("%+v", found)
	}
}
