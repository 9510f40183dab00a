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

// peer is a test's scope of a process. Its calls fail the test unless their comment excludes it.
type peer struct {
	*interop.Scope
	language
	t   *testing.T
	ctx context.Context
}

// language is that of a process.
type language string

const (
	golangPeer language = "Go"
	javaPeer   language = "Java"
)

func (l language) String() string { return string(l) }

func (l language) start(ctx context.Context) (*interop.Peer, error) {
	if l == golangPeer {
		return startGoPeer()
	}
	return interop.Start(ctx, interop.Curator)
}

// machines are the processes that tests share: to start one of Java takes longer than most tests. The nth call of
// startPeer in a test gives the nth process of the language. A process ends with the last test that uses it, and most
// run at once.
var machines = struct {
	sync.Mutex
	running map[language][]*machine
	used    map[usage]int
	scopes  int
}{running: make(map[language][]*machine), used: make(map[usage]int)}

type usage struct {
	*testing.T
	language
}

// closeLimit is how long the clients of a test may take to close.
const closeLimit = 20 * time.Second

type machine struct {
	*interop.Peer
	users int
}

// startJava is startPeer with Java.
func startJava(t *testing.T) *peer {
	t.Helper()
	return startPeer(t, javaPeer)
}

// startPeer gives the test a part of a process, without a client yet. Several calls in a test give as many processes.
func startPeer(t *testing.T, in language) *peer {
	t.Helper()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	m, name := acquireMachine(ctx, t, in)
	scope := m.Scope(name)
	t.Cleanup(func() {
		// Its context must not be that of the test, which has ended if the test took too long.
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if err := scope.Close(ctx); err != nil {
			t.Error(err)
		}
		releaseMachine(t, in, m)
	})
	return &peer{Scope: scope, language: in, t: t, ctx: ctx}
}

func acquireMachine(ctx context.Context, t *testing.T, in language) (m *machine, scope string) {
	t.Helper()
	machines.Lock()
	defer machines.Unlock()
	use := usage{t, in}
	n := machines.used[use]
	if n == len(machines.running[in]) {
		machines.running[in] = append(machines.running[in], nil)
	}
	running := machines.running[in]
	if running[n] == nil {
		process, err := in.start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		running[n] = &machine{Peer: process}
	}
	machines.used[use]++
	running[n].users++
	machines.scopes++
	return running[n], fmt.Sprint(t.Name(), " ", machines.scopes)
}

func releaseMachine(t *testing.T, in language, m *machine) {
	t.Helper()
	machines.Lock()
	defer machines.Unlock()
	delete(machines.used, usage{t, in}) // the test has ended
	m.users--
	if m.users > 0 {
		return
	}
	for i, running := range machines.running[in] {
		if running == m {
			machines.running[in][i] = nil
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// ownJava starts a Java process for the test alone, which may kill it.
func ownJava(t *testing.T) (*peer, *interop.Peer) {
	t.Helper()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	process, err := interop.Start(ctx, interop.Curator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	})
	return &peer{Scope: process.Scope(""), language: javaPeer, t: t, ctx: ctx}, process
}

// startClient returns a part of a Java process with a connected client, and the id of its session.
func startClient(t *testing.T) (j *peer, session int64) {
	t.Helper()
	connect := testenv.ConnectString(t)
	j = startJava(t)
	return j, j.start("", connect)
}

// start starts a client and gives the id of its session. Its timeout is long: tests that wait for the end of a
// session end it, and others must not lose it on a busy machine.
func (j *peer) start(client, connect string) (session int64) {
	j.t.Helper()
	j.must("start", interop.Args{"client": client, "connect": connect, "sessionTimeoutMs": 20_000}, &session)
	return session
}

// must calls a command that has to succeed.
func (j *peer) must(cmd string, args interop.Args, out any) {
	j.t.Helper()
	if err := j.Call(j.ctx, cmd, args, out); err != nil {
		j.t.Fatal(err)
	}
}

// async calls a command that has to succeed, and gives its end.
func (j *peer) async(cmd string, args interop.Args, out any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- j.Call(j.ctx, cmd, args, out) }()
	return done
}

// yes calls a command that has to succeed and to answer true.
func (j *peer) yes(cmd string, args interop.Args) {
	j.t.Helper()
	if !j.truth(cmd, args) {
		j.t.Fatalf("%s %v: not so", cmd, args)
	}
}

// truth calls a command that gives a boolean.
func (j *peer) truth(cmd string, args interop.Args) (b bool) {
	j.t.Helper()
	j.must(cmd, args, &b)
	return b
}

// text calls a command that gives a string.
func (j *peer) text(cmd string, args interop.Args) (s string) {
	j.t.Helper()
	j.must(cmd, args, &s)
	return s
}

// awaitState waits until the connection of a client reaches the state.
func (j *peer) awaitState(client, state string) {
	j.t.Helper()
	_, err := j.WaitEvent(j.ctx, func(ev interop.Event) bool {
		return ev.Kind == "state" && ev.Client == client && ev.State == state
	})
	if err != nil {
		j.t.Fatalf("client %q, state %s: %v", client, state, err)
	}
}

// object is an object of a recipe in another process.
type object struct {
	j          *peer
	kind, name string
}

// create makes an object with kind + "New" or kind + "Start".
func (j *peer) create(kind, op, name string, args interop.Args) *object {
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
