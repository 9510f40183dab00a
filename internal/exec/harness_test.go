package exec_test

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

const connectTimeout = 15 * time.Second

// pauses is a policy: the pauses between attempts.
type pauses []time.Duration

// everySecond retries n times.
func everySecond(n int) pauses {
	p := make(pauses, n)
	for i := range p {
		p[i] = time.Second
	}
	return p
}

func (p pauses) NewBackOff() backoff.BackOff { return &schedule{left: p} }

func (p pauses) Retryable(err error) bool {
	return errors.Is(err, jute.ErrConnectionLoss) || errors.Is(err, zk.ErrSessionExpired)
}

type schedule struct {
	left pauses
	hook func()
}

func (s *schedule) Reset() {}

func (s *schedule) NextBackOff() time.Duration {
	if s.hook != nil {
		s.hook()
	}
	if len(s.left) == 0 {
		return backoff.Stop
	}
	next := s.left[0]
	s.left = s.left[1:]
	return next
}

// hooked is a policy that calls a function when it is asked for a pause.
type hooked struct {
	pauses
	hook func()
}

func (h hooked) NewBackOff() backoff.BackOff { return &schedule{left: h.pauses, hook: h.hook} }

// fixture is an executor on a server in memory, put together as the framework does it.
type fixture struct {
	*exec.Executor
	server *server
	conn   atomic.Pointer[wire.Conn]
	queue  *dispatch.Queue
	tb     testing.TB

	held   chan struct{} // closed when a held answer may go
	onConn func()        // is called whenever the executor asks for the connection
	onUp   func()        // is called when a connection stands, before the executor gets its state
	unsent func()        // is called before the executor gets back what a connection has not sent

	beforeUnsent func() // is called once, when a connection gives back what it has not sent, before the executor knows

	mu     sync.Mutex
	conns  []*wire.Conn
	closed bool
}

// start returns an executor that is started and, if connected, has a connection.
func start(tb testing.TB, policy exec.Policy, connected bool) *fixture {
	tb.Helper()
	f := latent(tb, policy)
	f.Start()
	if connected {
		f.connect()
		for !f.conn.Load().IsConnected() {
			<-time.After(time.Millisecond) // of the bubble
		}
		synctest.Wait() // the executor knows the connection too: a test may set a hook from here on
	}
	return f
}

func latent(tb testing.TB, policy exec.Policy) *fixture {
	tb.Helper()
	f := &fixture{server: newServer(tb), queue: dispatch.Start(), tb: tb}
	conn := func() *wire.Conn {
		c := f.conn.Load()
		if f.onConn != nil {
			f.onConn()
		}
		return c
	}
	f.Executor = exec.New(conn, policy, connectTimeout, func(t dispatch.Task) { f.queue.Push(t) }, nil)
	tb.Cleanup(f.close)
	return f
}

// connect opens a connection, and another whenever the session has expired.
func (f *fixture) connect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	var conn *wire.Conn
	opened := make(chan struct{})
	conn, err := wire.Open(wire.Config{
		Servers:        []string{"a:1"},
		SessionTimeout: 30 * time.Second,
		ConnectTimeout: connectTimeout,
		CloseWait:      5 * time.Second,
		Auth:           nil,
		Dial:           f.server.dial,
		Logger:         slog.New(slog.DiscardHandler),
		OnUnsent: func(requests []*wire.Request) {
			if hook := f.beforeUnsent; hook != nil {
				f.beforeUnsent = nil
				hook()
			}
			if f.unsent != nil {
				f.unsent()
			}
			f.Unsent(requests)
		},
		OnState: func(s wire.State) {
			<-opened
			switch {
			case f.conn.Load() != conn:
			case s == wire.Connected:
				if f.onUp != nil {
					f.onUp()
				}
				f.Connected()
			case s == wire.Expired:
				f.connect()
			}
		},
	})
	if err != nil {
		f.tb.Error(err)
		return
	}
	f.conns = append(f.conns, conn)
	f.conn.Store(conn)
	close(opened)
}

// close ends everything, in the order of the framework.
func (f *fixture) close() {
	f.Stop()
	f.mu.Lock()
	f.closed = true
	conns := f.conns
	f.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	f.Drain(time.Minute)
	if !f.queue.Close(patience) {
		f.tb.Error("the dispatcher does not end")
	}
}

// steps is an operation: a chain of requests, each of which must succeed.
type steps struct {
	exec.Operation
	requests  []jute.Request
	next      int
	delivered chan error // of a background operation
	cleaned   chan error
}

// newSteps asks for the data of each path.
func newSteps(paths ...string) *steps {
	o := &steps{delivered: make(chan error, 10), cleaned: make(chan error, 10)}
	for _, path := range paths {
		o.requests = append(o.requests, jute.Request{Op: jute.OpGetData, Path: path})
	}
	o.Protocol = o
	return o
}

func (o *steps) Begin() {
	o.next = 0
	o.step()
}

func (o *steps) step() {
	if o.next == len(o.requests) {
		o.Finish(nil)
		return
	}
	o.Prepare(o.requests[o.next])
	o.next++
	o.Send(func() {
		if err := o.Err(); err != nil {
			o.Finish(err)
			return
		}
		o.step()
	})
}

func (o *steps) Deliver() { o.delivered <- o.Result() }

func (o *steps) CleanUp(err error) { o.cleaned <- err }
