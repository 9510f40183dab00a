package interop_test

import (
	"context"
	"fmt"
	"path"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
)

// wait is the outcome of an acquire that may take a while.
type wait struct {
	held *held
	err  error
}

// later has a contender acquire its lock.
func (m *meeting) later(c *contender) <-chan wait {
	got := make(chan wait, 1)
	go func() {
		held, err := c.acquire(m.ctx)
		got <- wait{held, err}
	}()
	return got
}

// take waits for an acquire.
func (m *meeting) take(waiting <-chan wait) *held {
	m.t.Helper()
	got := <-waiting // it ends with the context of the test
	if got.err != nil {
		m.t.Fatal(got.err)
	}
	return got.held
}

func (m *meeting) release(h *held) {
	m.t.Helper()
	if err := h.release(m.ctx); err != nil {
		m.t.Fatal(err)
	}
}

// awaitLine waits until a side has the nodes of a waiter.
func (m *meeting) awaitLine(s side, k lockKind) {
	m.t.Helper()
	session := m.session(s)
	testenv.Eventually(m.t, func() bool { return m.owned(session) == k.nodesOf(s) }, fmt.Sprint(s, " stands in line"))
}

// mustWait fails if an acquire is over.
func (m *meeting) mustWait(waiting <-chan wait) {
	m.t.Helper()
	select {
	case got := <-waiting:
		m.t.Fatalf("it does not wait: %+v", got)
	default:
	}
}

// rivals are pairs of locks: the held one excludes the wanted one.
type rivals struct {
	name         string
	held, wanted lockKind
}

var (
	// inLine are the rivals of which the holder can be asked to release the lock.
	inLine = []rivals{
		{"mutex", mutex, mutex},
		{"read lock for writer", readLock, writeLock},
		{"write lock for reader", writeLock, readLock},
		{"write lock for writer", writeLock, writeLock},
	}
	allRivals = append([]rivals{
		{"semaphore mutex", semaphoreMutex, semaphoreMutex},
		{"semaphore", allLeases, allLeases},
		{"multi lock", multiLock, multiLock},
	}, inLine...)
)

// forEvery runs a story for each of the rivals, first with Go as the holder and Java as the one that waits, then the
// other way round.
func forEvery(t *testing.T, all []rivals, story func(m *meeting, holder, waiter *peer, kinds rivals)) {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	for _, kinds := range all {
		t.Run(kinds.name, func(t *testing.T) {
			t.Parallel()
			m := meetApart(t, 1)
			for i := range m.peers {
				story(m, m.peers[i], m.peers[1-i], kinds)
				m.awaitNothing()
			}
		})
	}
}

func TestGoAndJavaWaitForEachOther(t *testing.T) {
	forEvery(t, allRivals, func(m *meeting, holder, waiter *peer, kinds rivals) {
		m.t.Helper()
		got := m.take(m.later(kinds.held.of(holder)))
		waiting := m.later(kinds.wanted.of(waiter))
		m.awaitLine(waiter, kinds.wanted)
		m.mustWait(waiting)
		m.release(got)
		m.release(m.take(waiting))
	})
}

// TestLocksOutliveTheSessionsOfGoAndJava ends the session of a waiter, which queues again, and of the holder.
//
// Java 5.4.0 may line up only when the holder goes: if it sets its watch in the next session it does not notice sooner.
// Its semaphores do notice, and have to be in line before the holder goes: else the container of the leases may vanish,
// and they fail with NoNode.
func TestLocksOutliveTheSessionsOfGoAndJava(t *testing.T) {
	forEvery(t, allRivals, func(m *meeting, holder, waiter *peer, kinds rivals) {
		m.t.Helper()
		got := m.take(m.later(kinds.held.of(holder)))
		waiting := m.later(kinds.wanted.of(waiter))
		m.awaitLine(waiter, kinds.wanted)
		m.expire(waiter)
		if waiter.language == javaPeer && kinds.wanted.nodes > 1 {
			m.awaitLine(waiter, kinds.wanted)
		}
		m.mustWait(waiting)
		m.expire(holder)
		next := m.take(waiting)
		if got.lost != nil { // a lock of Java is not released then: it has not noticed, and would find no node
			cause, err := got.lost(m.ctx)
			if err != nil {
				m.t.Fatalf("the hold of Go does not end with its session: %v", err)
			}
			if cause != locks.ErrLockLost.Error() {
				m.t.Errorf("it ends with %s", cause)
			}
		}
		if next.lost != nil {
			over, cancel := context.WithCancel(m.ctx)
			cancel()
			if cause, err := next.lost(over); err == nil {
				m.t.Errorf("the hold of the next ends with %s", cause)
			}
		}
		m.release(next)
	})
}

// TestJavaSemaphoreOfLostSessionDoesNotBlock ends the session of Java while it waits for the one lease, with one of
// Go behind it. Java 5.4.0 goes on without the turn, which Go has by then: it may have a node among the leases that
// no other contender waits for.
func TestJavaSemaphoreOfLostSessionDoesNotBlock(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meetApart(t, 2)
	first, theirs, ours := m.peers[0], m.peers[1], m.peers[2]
	for range 5 {
		got := m.take(m.later(semaphoreMutex.of(first)))
		java := m.later(semaphoreMutex.of(theirs))
		m.awaitLine(theirs, semaphoreMutex)
		next := m.later(semaphoreMutex.of(ours))
		m.awaitLine(ours, semaphoreMutex)
		m.expire(theirs)
		session := m.session(theirs)
		testenv.Eventually(t, func() bool { return m.owned(session) > 0 }, "Java goes on")
		m.mustWait(java)
		m.mustWait(next)
		m.release(got)
		for range 2 {
			var w wait
			select {
			case w = <-java:
			case w = <-next:
			}
			if w.err != nil {
				t.Fatal(w.err)
			}
			m.release(w.held)
		}
		m.awaitNothing()
	}
}

// TestGoAndJavaRevokeEachOther lets a waiter ask the holder to release the lock.
func TestGoAndJavaRevokeEachOther(t *testing.T) {
	forEvery(t, inLine, func(m *meeting, holder, waiter *peer, kinds rivals) {
		m.t.Helper()
		c := kinds.held.of(holder)
		requested, err := c.revocable()
		if err != nil {
			m.t.Fatal(err)
		}
		got := m.take(m.later(c))
		line, err := c.participants(m.ctx)
		if err != nil || len(line) != 1 {
			m.t.Fatalf("participants %q, error %v", line, err)
		}
		if all := m.nodes(meetingPath); len(all) != 1 || len(all[0].data) != 0 {
			m.t.Errorf("the node of a revocable lock: %+v", all)
		}
		waiting := m.later(kinds.wanted.of(waiter))
		m.awaitLine(waiter, kinds.wanted)
		if err := waiter.Call(m.ctx, "revoke", interop.Args{"path": path.Join(meetingPath, line[0])}, nil); err != nil {
			m.t.Fatal(err)
		}
		if err := requested(m.ctx); err != nil {
			m.t.Fatalf("the holder gets no request: %v", err)
		}
		m.mustWait(waiting)
		m.release(got)
		m.release(m.take(waiting))
	})
}

// TestGoThatWroteAndReadsKeepsJavaOut lets a writer of Java wait before Go goes on to read. The other way round Java
// 5.4.0 lets the writer in (CURATOR-621).
func TestGoThatWroteAndReadsKeepsJavaOut(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meet(t, 1)
	theirs := m.peers[0]
	rw := locks.NewInterProcessReadWriteLock(m.sides[0].(golang).Client, meetingPath)
	owner := locks.WithOwner(m.ctx)
	writes, err := rw.WriteLock().Acquire(owner)
	if err != nil {
		t.Fatal(err)
	}
	waiting := m.later(writeLock.of(theirs))
	m.awaitLine(theirs, writeLock)
	reads, err := rw.ReadLock().Acquire(owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := writes.Release(m.ctx); err != nil {
		t.Fatal(err)
	}
	for range 100 { // it has the time to come in, if it can
		if err := theirs.look(m.ctx); err != nil {
			t.Fatal(err)
		}
	}
	m.mustWait(waiting)
	if err := reads.Release(m.ctx); err != nil {
		t.Fatal(err)
	}
	m.release(m.take(waiting))
}
