package interop_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// java is a test's own part of a Java process; its calls fail the test unless they say otherwise.
type java struct {
	*interop.Scope
	t   *testing.T
	ctx context.Context
}

// machines are the Java processes that tests share: to start one takes longer than most tests. The nth call of
// startJava in a test gives the nth process. A process ends with the last test that uses it, and most run at once.
var machines struct {
	sync.Mutex
	running []*machine
	used    map[*testing.T]int
	scopes  int
}

// closeLimit is how long the clients of a test may take to close.
const closeLimit = 20 * time.Second

type machine struct {
	*interop.Peer
	users int
}

// startJava gives the test a part of a Java process, without a client yet. Several calls in a test give as many
// processes.
func startJava(t *testing.T) *java {
	t.Helper()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	peer, name := acquireMachine(ctx, t)
	scope := peer.Scope(name)
	t.Cleanup(func() {
		// Its context must not be that of the test, which has ended if the test took too long.
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if err := scope.Close(ctx); err != nil {
			t.Error(err)
		}
		releaseMachine(t, peer)
	})
	return &java{Scope: scope, t: t, ctx: ctx}
}

func acquireMachine(ctx context.Context, t *testing.T) (m *machine, scope string) {
	t.Helper()
	machines.Lock()
	defer machines.Unlock()
	if machines.used == nil {
		machines.used = make(map[*testing.T]int)
	}
	n := machines.used[t]
	if n == len(machines.running) {
		machines.running = append(machines.running, nil)
	}
	if machines.running[n] == nil {
		peer, err := interop.Start(ctx, interop.Curator)
		if err != nil {
			t.Fatal(err)
		}
		machines.running[n] = &machine{Peer: peer}
	}
	machines.used[t]++
	machines.running[n].users++
	machines.scopes++
	return machines.running[n], fmt.Sprint(t.Name(), " ", machines.scopes)
}

func releaseMachine(t *testing.T, m *machine) {
	t.Helper()
	machines.Lock()
	defer machines.Unlock()
	delete(machines.used, t) // the test has ended
	m.users--
	if m.users > 0 {
		return
	}
	for i, running := range machines.running {
		if running == m {
			machines.running[i] = nil
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// ownJava starts a Java process for the test alone, which may kill it.
func ownJava(t *testing.T) (*java, *interop.Peer) {
	t.Helper()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	peer, err := interop.Start(ctx, interop.Curator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	})
	return &java{Scope: peer.Scope(""), t: t, ctx: ctx}, peer
}

// startClient gives a part of a Java process with a connected client, and the id of its session.
func startClient(t *testing.T) (j *java, session int64) {
	t.Helper()
	connect := testenv.ConnectString(t)
	j = startJava(t)
	return j, j.start("", connect)
}

// start starts a client and gives the id of its session. Its timeout is long: tests that wait for the end of a
// session end it, and others must not lose it on a busy machine.
func (j *java) start(client, connect string) (session int64) {
	j.t.Helper()
	j.must("start", interop.Args{"client": client, "connect": connect, "sessionTimeoutMs": 20_000}, &session)
	return session
}

// must calls a command that has to succeed.
func (j *java) must(cmd string, args interop.Args, out any) {
	j.t.Helper()
	if err := j.Call(j.ctx, cmd, args, out); err != nil {
		j.t.Fatal(err)
	}
}

// async calls a command that has to succeed, and gives its end.
func (j *java) async(cmd string, args interop.Args, out any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- j.Call(j.ctx, cmd, args, out) }()
	return done
}

// yes calls a command that has to succeed and to answer true.
func (j *java) yes(cmd string, args interop.Args) {
	j.t.Helper()
	if !j.truth(cmd, args) {
		j.t.Fatalf("%s %v: not so", cmd, args)
	}
}

// truth calls a command that gives a boolean.
func (j *java) truth(cmd string, args interop.Args) (b bool) {
	j.t.Helper()
	j.must(cmd, args, &b)
	return b
}

// text calls a command that gives a string.
func (j *java) text(cmd string, args interop.Args) (s string) {
	j.t.Helper()
	j.must(cmd, args, &s)
	return s
}

// awaitState waits until the connection of a client reaches the state.
func (j *java) awaitState(client, state string) {
	j.t.Helper()
	_, err := j.WaitEvent(j.ctx, func(ev interop.Event) bool {
		return ev.Kind == "state" && ev.Client == client && ev.State == state
	})
	if err != nil {
		j.t.Fatalf("client %q, state %s: %v", client, state, err)
	}
}

// object is an object of a recipe in a Java process.
type object struct {
	j          *java
	kind, name string
}

// create makes an object with kind + "New" or kind + "Start".
func (j *java) create(kind, op, name string, args interop.Args) *object {
	j.t.Helper()
	o := &object{j: j, kind: kind, name: name}
	o.do(op, args, nil)
	return o
}

func (o *object) args(args interop.Args) interop.Args {
	named := interop.Args{"name": o.name}
	maps.Copy(named, args)
	return named
}

// do calls a command that has to succeed.
func (o *object) do(op string, args interop.Args, out any) {
	o.j.t.Helper()
	o.j.must(o.kind+op, o.args(args), out)
}

// yes calls a command that has to succeed and to answer true.
func (o *object) yes(op string, args interop.Args) {
	o.j.t.Helper()
	o.j.yes(o.kind+op, o.args(args))
}

// truth calls a command that gives a boolean.
func (o *object) truth(op string, args interop.Args) bool {
	o.j.t.Helper()
	return o.j.truth(o.kind+op, o.args(args))
}

// later calls a command that may take a while, and has to succeed and to answer true.
func (o *object) later(op string, args interop.Args) *pending {
	p := &pending{t: o.j.t, what: o.name + ": " + o.kind + op}
	p.end = o.j.async(o.kind+op, o.args(args), &p.answer)
	return p
}

// event waits for an event of the object.
func (o *object) event(kind string) interop.Event {
	o.j.t.Helper()
	ev, err := o.j.WaitEvent(o.j.ctx, func(ev interop.Event) bool { return ev.Kind == kind && ev.Name == o.name })
	if err != nil {
		o.j.t.Fatalf("no %s of %s: %v", kind, o.name, err)
	}
	return ev
}

// pending is a command whose answer is on its way.
type pending struct {
	t      *testing.T
	what   string
	answer bool
	end    <-chan error
}

// done waits for the answer.
func (p *pending) done() {
	p.t.Helper()
	if err := <-p.end; err != nil || !p.answer {
		p.t.Fatalf("%s: %t, %v", p.what, p.answer, err)
	}
}
