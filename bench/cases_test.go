package main

import (
	"testing"

	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/internal/testenv"
)

// short is a load of some operations.
func short(name string) load {
	l := work(name).threads(3)
	l.Seconds, l.Window, l.Waiters = 0.02, 10, 5
	return l
}

func TestCasesOnNullServer(t *testing.T) {
	srv, err := nullserver.New()
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, srv.Close)
	for name := range libraries {
		target := open(t, name, srv.Addr())
		for _, l := range []load{
			short(createSync), short(getDataSync), short(createBackground), short(getDataBg), short(connecting),
		} {
			check(t, target, l)
			l.Keep = true
			check(t, target, l)
		}
	}
}

// TestLocks needs a server that keeps nodes, and so do the tests of the other recipes.
func TestLocks(t *testing.T) {
	curators := open(t, curator, testenv.ConnectString(t))
	for _, l := range []load{
		short(lockAlone), short(lockContended), short(lockLine),
		short(lockAlone).lock(writeLock), short(lockShared).lock(readLock), short(lockOneClient).lock(readLock),
		short(lockShared).lock(semaphore).leases(2), short(setDataSync), short(setDataFenced),
	} {
		check(t, curators, l)
	}
	for _, kind := range []string{mutex, readLock, writeLock, semaphore} {
		l := short(waiting).lock(kind)
		r := check(t, curators, l)
		// A goroutine of the lock before may end meanwhile.
		if r.Ops != int64(l.Waiters) || r.Waiting.HeapBytes == 0 || r.Waiting.Threads <= r.Before.Threads {
			t.Errorf("%s: not all waiters were there: %+v", kind, r)
		}
	}
	plains := open(t, plain, testenv.Addr(t))
	check(t, plains, short(lockAlone))
	for _, bad := range []struct {
		target *target
		kind   string
	}{{curators, "nonsense"}, {plains, readLock}} {
		for _, l := range []load{short(lockAlone), short(lockShared), short(waiting)} {
			if _, err := bad.target.run(testenv.Context(t), l.lock(bad.kind)); err == nil {
				t.Errorf("%s has a lock %s: %s", bad.target.library.base, bad.kind, l.Case)
			}
		}
	}
}

func TestLatches(t *testing.T) {
	check(t, open(t, curator, testenv.ConnectString(t)), short(latches))
	if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(latches)); err == nil {
		t.Error("a library had a latch that has none")
	}
}

func TestQueues(t *testing.T) {
	curators := open(t, curator, testenv.ConnectString(t))
	for _, l := range []load{
		short(queueing), short(queueing).batch(10), short(queueing).safe(),
		short(queuePut), short(queuePut).batch(10), short(queueConsume), short(queueBacklog),
	} {
		check(t, curators, l)
	}
	plains := open(t, plain, testenv.Addr(t))
	if _, err := plains.run(testenv.Context(t), short(queueing)); err == nil {
		t.Error("a library had a queue that has none")
	}
}

func TestBarriers(t *testing.T) {
	check(t, open(t, curator, testenv.ConnectString(t)), short(doubleBarrier))
	if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(doubleBarrier)); err == nil {
		t.Error("a library had a barrier that has none")
	}
}

func TestShared(t *testing.T) {
	check(t, open(t, curator, testenv.ConnectString(t)), short(sharedChange))
	if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(sharedChange)); err == nil {
		t.Error("a library had a shared count that has none")
	}
}

func TestCounters(t *testing.T) {
	curators := open(t, curator, testenv.ConnectString(t))
	for _, l := range []load{short(counting), short(counting).safe(), short(countingOneClient)} {
		check(t, curators, l)
	}
	if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(counting)); err == nil {
		t.Error("a library had a counter that has none")
	}
}

func TestNodes(t *testing.T) {
	if r := check(t, open(t, curator, testenv.ConnectString(t)), short(nodesReturn)); r.P50 <= 0 || r.Requests < r.Ops {
		t.Errorf("%+v", r)
	}
	if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(nodesReturn)); err == nil {
		t.Error("a library kept nodes that keeps none")
	}
}

func TestDiscovery(t *testing.T) {
	curators := open(t, curator, testenv.ConnectString(t))
	if r := check(t, curators, short(instancesReturn).window(60)); r.P50 <= 0 || r.Requests < r.Ops {
		t.Errorf("%+v", r)
	}
	// Each client sees each instance.
	if r := check(t, curators, short(instanceSeen)); r.P50 <= 0 || r.Ops%3 != 0 {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, curators, short(instancePick)); r.Ops < picksAtOnce {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{instancesReturn, instanceSeen, instancePick} {
		if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(name)); err == nil {
			t.Errorf("%s: a library had a discovery that has none", name)
		}
	}
}

func TestCaches(t *testing.T) {
	curators := open(t, curator, testenv.ConnectString(t))
	check(t, curators, short(cacheLoad))
	check(t, curators, short(cacheChange))
	for _, nodes := range []int{10, 10_500} { // without directories and with them
		l := short(cacheMemory).window(nodes)
		if r := mustRun(t, curators, l); r.Ops < int64(nodes) || r.Waiting.HeapBytes == 0 || r.Elapsed <= 0 {
			t.Errorf("%+v: %+v", l, r)
		}
	}
	away, err := startAway(testenv.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, away.Close)
	check(t, open(t, curator, away.Addr()), short(cacheReturn))
	check(t, open(t, plain, testenv.Addr(t)), short(nodeChange))
	if _, err := curators.run(testenv.Context(t), short(nodeChange)); err == nil {
		t.Error("the floor of a cache was measured with another client than go-zookeeper's")
	}
	for _, name := range []string{cacheLoad, cacheMemory, cacheChange, cacheReturn} {
		if _, err := open(t, plain, testenv.Addr(t)).run(testenv.Context(t), short(name)); err == nil {
			t.Errorf("%s: a library had a cache that has none", name)
		}
	}
}

func TestReconnect(t *testing.T) {
	cut, err := startCutter(testenv.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, cut.close)
	l := short(reconnecting)
	for name := range libraries {
		// Several servers, and no time but what the first cut takes.
		target := open(t, name, cut.addr()+","+cut.addr())
		for l.Seconds = 0.1; l.Seconds < 20; l.Seconds *= 2 {
			if r := mustRun(t, target, l); r.Ops > 0 {
				break
			}
		}
		if l.Seconds > 20 {
			t.Errorf("%s: nothing was cut", name)
		}
	}
}

func open(t *testing.T, library, connect string) *target {
	t.Helper()
	ctx := testenv.Context(t)
	l, err := libraryNamed(library)
	if err != nil {
		t.Fatal(err)
	}
	target, err := openTarget(ctx, l, connect)
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, func() error { return target.close(ctx) })
	return target
}

// atEnd closes something before everything that was opened earlier.
func atEnd(t *testing.T, closing func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := closing(); err != nil {
			t.Error(err)
		}
	})
}

func mustRun(t *testing.T, target *target, l load) result {
	t.Helper()
	r, err := target.run(testenv.Context(t), l)
	if err != nil || r.Errors > 0 {
		t.Fatalf("%+v: %+v, %v", l, r, err)
	}
	return r
}

// check runs a load and checks what every good result has.
func check(t *testing.T, target *target, l load) result {
	t.Helper()
	r := mustRun(t, target, l)
	if r.Ops <= 0 || r.Elapsed <= 0 || r.CPU < 0 || r.P50 > r.P99 || r.P99 > r.Max {
		t.Errorf("%+v: %+v", l, r)
	}
	return r
}
