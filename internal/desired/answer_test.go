package desired

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// addHere adds nodes to the reconciler of a client without a server.
func addHere(t *testing.T, paths ...string) (*Reconciler, []*Node) {
	t.Helper()
	client, err := framework.New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var nodes []*Node
	for _, path := range paths {
		n, err := Of(client).Add(Spec{
			Client: client, Path: path, Mode: builders.Ephemeral, Data: make([]byte, suspectSize),
		}, func(Event) {})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return Of(client), nodes
}

// send has the create of a node under way.
func (r *Reconciler) send(n *Node) planned {
	n.action = create
	r.begin(n)
	r.writing++
	return r.plannedOf(n)
}

// An answer that comes behind the end of its session makes no node present.
func TestReconcilerAnswerOfEndedSessionIsNoPresence(t *testing.T) {
	t.Parallel()
	r, nodes := addHere(t, "/a")
	n := nodes[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, current := range []int64{7, noSession} {
		r.session = current
		w := r.send(n)
		if r.wrote(&w, 5, nil); n.present || n.written > 0 || n.action != look {
			t.Errorf("in session %d: present %v, written %d, action %d", current, n.present, n.written, n.action)
		}
	}
	r.session = 5
	w := r.send(n)
	if r.wrote(&w, 5, nil); !n.present || n.written == 0 {
		t.Errorf("in its session: present %v, written %d", n.present, n.written)
	}
}

// A create that was not sent has created nothing: nothing has to be brought up to date, and it has ended no connection.
// One whose answer is lost may have done both.
func TestReconcilerCreateThatWasNotSent(t *testing.T) {
	t.Parallel()
	r, nodes := addHere(t, "/a")
	n := nodes[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	lose := func(err error) {
		w := r.send(n)
		r.written(r.flight, r.session, []planned{w}, []int{0}, callbacks.Event{Err: err})
	}
	for range maxHangUps {
		if lose(builders.ErrNotSent); r.behind || n.uncertain || n.alone || n.lost != nil || n.err != nil {
			t.Fatalf("behind %v, uncertain %v, alone %v, lost %v, error %v", r.behind, n.uncertain, n.alone, n.lost, n.err)
		}
	}
	lose(framework.ErrConnectionLoss)
	if !r.behind || !n.uncertain || !n.alone || !errors.Is(n.lost, framework.ErrConnectionLoss) || n.err != nil {
		t.Errorf("behind %v, uncertain %v, alone %v, lost %v, error %v", r.behind, n.uncertain, n.alone, n.lost, n.err)
	}
	for range maxHangUps - 1 {
		lose(framework.ErrConnectionLoss)
	}
	if !errors.Is(n.err, builders.ErrRequestTooLarge) {
		t.Errorf("the error behind %d losses is %v", maxHangUps, n.err)
	}
}

// The size of data that was lost says nothing about newer data.
func TestReconcilerLossOfOlderDataIsNoReason(t *testing.T) {
	t.Parallel()
	r, nodes := addHere(t, "/a")
	n := nodes[0]
	r.mu.Lock()
	w := r.send(n)
	r.mu.Unlock()
	n.Set([]byte("x"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for range maxHangUps {
		r.writing++
		r.written(r.flight, r.session, []planned{w}, []int{0}, callbacks.Event{Err: framework.ErrConnectionLoss})
	}
	if n.alone || n.err != nil {
		t.Errorf("alone %v, error %v", n.alone, n.err)
	}
}

// A node that waits for what comes of the one above it, or of a parent that is being created, goes on with that.
func TestReconcilerNodeBelowGoesOn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *Reconciler, above *Node){
		"answered": func(r *Reconciler, above *Node) { r.answered(above) },
		"gone":     func(r *Reconciler, above *Node) { r.forget(above, zk.ErrNoNode) },
		"on a new connection, which sends it anew": func(r *Reconciler, _ *Node) {
			below := r.byPath["/a/b"]
			below.parent.waiting = nil
			r.want(below, create)
		},
		"removed": func(r *Reconciler, above *Node) { r.remove(above); r.answered(above) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, nodes := addHere(t, "/a", "/a/b")
			above, n := nodes[0], nodes[1]
			r.mu.Lock()
			defer r.mu.Unlock()
			r.send(above)
			n.action, n.queued = create, nowhere
			if !r.awaitsParents(n) {
				t.Fatal("it does not wait")
			}
			if end(r, above); n.queued != inWrites {
				t.Errorf("it is in %d", n.queued)
			}
		})
	}
	r, nodes := addHere(t, "/a")
	n := nodes[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	n.action, n.queued, n.parent.creating = create, nowhere, true
	if !r.awaitsParents(n) {
		t.Fatal("it does not wait for its parent")
	}
	n.parent.creating = false
	if r.resume(n.parent); n.queued != inWrites {
		t.Errorf("it is in %d", n.queued)
	}
}

// Events have a node looked at many times in the pause that others make necessary.
func TestReconcilerPauseIsNotProlonged(t *testing.T) {
	t.Parallel()
	r, nodes := addHere(t, "/a")
	n := nodes[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 10 {
		r.pause(n)
	}
	if left := time.Until(n.retryAt); left > 2*firstPause {
		t.Errorf("the first pause ends in %v", left)
	}
	n.retryAt = time.Time{} // it has ended
	if r.pause(n); n.failures != 2 {
		t.Errorf("pause %d in a row", n.failures)
	}
}
