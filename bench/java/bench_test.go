package java_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/bench/java"
	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

func TestNullServer(t *testing.T) {
	srv, err := nullserver.New()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	b := start(t)
	b.must("open", interop.Args{"target": "null", "connect": srv.Addr() + "/chroot"}, nil)
	for _, load := range []interop.Args{
		{"case": "create-sync"},
		{"case": "create-sync", "threads": 3, "payload": 1000},
		{"case": "getData-sync", "threads": 3},
		{"case": "create-bg", "window": 50},
		{"case": "getData-bg", "window": 1000},
		{"case": "connect"},
	} {
		t.Logf("%v", load)
		b.check(b.run("null", load))
	}
	b.must("close", interop.Args{"target": "null"}, nil)
}

func TestRealServer(t *testing.T) {
	connect := testenv.ConnectString(t)
	b := start(t)
	b.must("open", interop.Args{"target": "real", "connect": connect}, nil)
	for _, load := range []interop.Args{
		{"case": "create-sync", "threads": 2},
		{"case": "create-bg"},
		{"case": "getData-bg"},
		{"case": "lock-alone", "threads": 2},
		{"case": "lock-shared", "lock": "read", "threads": 3},
		{"case": "lock-one-client", "lock": "read", "threads": 3},
		{"case": "lock-shared", "lock": "semaphore", "threads": 3, "leases": 2},
		{"case": "lock-contended", "threads": 3},
		{"case": "waiters", "waiters": 20},
		{"case": "waiters", "waiters": 20, "lock": "read"},
		{"case": "waiters", "waiters": 20, "lock": "write"},
		{"case": "waiters", "waiters": 20, "lock": "semaphore"},
		{"case": "latch", "threads": 3},
		{"case": "queue", "window": 20},
		{"case": "queue", "window": 20, "safe": true},
		{"case": "queue", "window": 20, "batch": 10},
		{"case": "queue-put", "window": 20},
		{"case": "queue-put", "window": 20, "batch": 10},
		{"case": "double-barrier", "threads": 2},
		{"case": "shared-change"},
		{"case": "counter", "threads": 2},
		{"case": "counter-one-client", "threads": 2},
		{"case": "nodes-return", "window": 20},
		{"case": "instances-return", "window": 60},
		{"case": "instance-seen", "threads": 3},
		{"case": "cache-load", "window": 20},
		{"case": "cache-load", "window": 20, "cache": "tree"},
		{"case": "cache-load", "window": 20, "cache": "children"},
		{"case": "cache-change", "window": 20},
		{"case": "cache-change", "window": 20, "cache": "tree"},
		{"case": "cache-change", "window": 20, "cache": "children"},
	} {
		t.Logf("%v", load)
		r := b.run("real", load)
		b.check(r)
		if n, ok := load["waiters"].(int); ok && (r.Ops != int64(n) || r.Waiting.Threads < r.Before.Threads+n) {
			t.Errorf("not all waiters were there: %+v", r)
		}
	}
	for _, load := range []interop.Args{
		{"case": "queue-consume", "window": 20},
		{"case": "queue-backlog", "window": 20},
		{"case": "cache-memory", "window": 20},
		{"case": "instance-pick", "window": 20},
	} {
		if r := b.run("real", load); r.Ops <= 0 || r.Errors != 0 || r.Elapsed <= 0 {
			t.Errorf("%v: %+v", load, r)
		}
	}
	var m java.Memory
	b.must("memory", nil, &m)
	if m.HeapBytes <= 0 || m.Threads <= 0 {
		t.Errorf("memory %+v", m)
	}
}

func TestReconnect(t *testing.T) {
	srv, err := nullserver.New()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	p := newProxy(t, srv.Addr())
	b := start(t)
	// The address is there twice: ZooKeeper's client waits a second longer before it tries the only server again.
	connect := p.ln.Addr().String() + "," + p.ln.Addr().String()
	b.must("open", interop.Args{"target": "p", "connect": connect}, nil)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		(<-p.busy).Close()
	}()
	r := b.run("p", interop.Args{"case": "reconnect", "seconds": 1})
	<-cut
	b.check(r)
	if r.Ops != 1 || r.Answers == 0 {
		t.Errorf("after one cut: %+v", r)
	}
}

func TestBadCommands(t *testing.T) {
	b := start(t)
	for cmd, args := range map[string]interop.Args{
		"nonsense": nil,
		"run":      {"case": "nonsense"},
		"open":     {"connect": ""},
	} {
		var remote *interop.RemoteError
		if err := b.Call(b.ctx, cmd, args, nil); !errors.As(err, &remote) {
			t.Errorf("%s: %v", cmd, err)
		}
	}
	if err := b.Call(b.ctx, "run", interop.Args{"case": "create-bg", "target": "none"}, nil); err == nil {
		t.Error("a target was used that is not open")
	}
}

// bench is the program of a test.
type bench struct {
	*interop.Peer
	t   *testing.T
	ctx context.Context
}

func start(t *testing.T) *bench {
	t.Helper()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	peer, err := interop.Start(ctx, java.Bench)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{Peer: peer, t: t, ctx: ctx}
}

func (b *bench) must(cmd string, args interop.Args, out any) {
	b.t.Helper()
	if err := b.Call(b.ctx, cmd, args, out); err != nil {
		b.t.Fatal(err)
	}
}

// run does a short run.
func (b *bench) run(target string, load interop.Args) (r java.Result) {
	b.t.Helper()
	args := interop.Args{"target": target, "seconds": 0.05}
	for name, arg := range load {
		args[name] = arg
	}
	if err := b.Call(b.ctx, "run", args, &r); err != nil {
		b.t.Error(err)
	}
	return r
}

// check checks what every good run has.
func (b *bench) check(r java.Result) {
	b.t.Helper()
	b.t.Logf("%+v", r)
	if r.Ops <= 0 || r.Errors != 0 || r.Elapsed <= 0 || r.CPU < 0 {
		b.t.Errorf("%+v", r)
	}
	if r.P50 <= 0 || r.P50 > r.P99 || r.P99 > r.Max || r.Max > float64(2*time.Minute/time.Microsecond) {
		b.t.Errorf("latencies %v, %v, %v", r.P50, r.P99, r.Max)
	}
}
