package grpcresolver_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/grpcresolver"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// config is that of the documentation of the package.
const config = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{}],
    "waitForReady": true,
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
}`

// dial returns a connection to the service "orders".
func dial(t *testing.T, d *services, config string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("zk:///orders", grpc.WithResolvers(grpcresolver.New(d)),
		grpc.WithDefaultServiceConfig(config), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testclient.Must(t, err)
	t.Cleanup(func() { testclient.Must(t, conn.Close()) })
	return conn
}

// ask asks a server for its name.
func ask(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	var name wrapperspb.StringValue
	err := conn.Invoke(ctx, "/test.Names/Name", &emptypb.Empty{}, &name)
	return name.GetValue(), err
}

// newServer returns a server that answers with what name returns.
func newServer(name func(ctx context.Context) (string, error)) *grpc.Server {
	server := grpc.NewServer()
	handle := func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		answer, err := name(ctx)
		return wrapperspb.String(answer), err
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Names", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Name", Handler: handle}},
	}, struct{}{})
	return server
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	testclient.Must(t, err)
	return lis
}

// process is a server that can die.
type process struct {
	id      string
	way     *curatortest.Proxy // to ZooKeeper
	client  *framework.Client
	server  *grpc.Server
	stop    context.CancelFunc
	ended   chan error // by Serve
	entered chan struct{}

	mu        sync.Mutex
	dying     bool
	answering int
}

// start starts a process with an instance of "orders".
func start(t *testing.T, chroot, id string) *process {
	t.Helper()
	p := &process{id: id, way: curatortest.NewProxyT(t, testenv.Addr(t)), ended: make(chan error, 1)}
	p.entered = make(chan struct{}, 1)
	p.client = testclient.Start(t, p.way.ConnectString()+chroot, patient()...)
	p.server = newServer(p.answer)
	i := discovery.NewServiceInstance[string]("orders", "", 0)
	i.ID = id
	ctx, cancel := context.WithCancel(testenv.Context(t))
	p.stop = cancel
	d, lis := discover(t, p.client), listen(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		p.ended <- grpcresolver.Serve(ctx, p.server, lis, d, i,
			grpcresolver.WithPause(100*time.Millisecond), grpcresolver.WithDeadline(time.Minute))
	})
	t.Cleanup(func() { // before the discovery is closed
		cancel()
		serving.Wait()
	})
	return p
}

// answer answers a call. In a process that dies it does not.
func (p *process) answer(ctx context.Context) (string, error) {
	p.mu.Lock()
	dying := p.dying
	if !dying {
		p.answering++
	}
	p.mu.Unlock()
	if !dying {
		return p.id, nil
	}
	select {
	case p.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return "", ctx.Err()
}

// answered notes that an answer has arrived.
func (p *process) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answering--
}

// kill ends the process at once, with at least one call that it has begun. gRPC does not retry a call whose answer has
// begun to arrive, so there is none.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	p.dying = true
	p.mu.Unlock()
	<-p.entered
	testenv.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answering == 0
	}, "the answers have arrived")
	p.way.Faults().RefuseConnects()
	p.way.Faults().CutAll()
	testclient.Must(t, p.client.Close())
	p.server.Stop()
	<-p.ended
}

// drain ends the process as it should end.
func (p *process) drain(t *testing.T) {
	t.Helper()
	p.stop()
	testclient.Must(t, <-p.ended)
}

// Three servers die in turn, one a second at full length, and come back at other addresses. One in four drains. The
// nodes of the dead are there until their sessions have ended.
func TestNoCallFailsWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	turns, pace := testenv.Size(6, 6, 60), testenv.Size(100*time.Millisecond, 100*time.Millisecond, time.Second)
	var mu sync.Mutex
	processes, calls := map[string]*process{}, map[string]int{}
	begin := func(id string) *process {
		p := start(t, chroot, id)
		mu.Lock()
		defer mu.Unlock()
		processes[id], calls[id] = p, 0
		return p
	}
	var alive []*process
	for n := range 3 {
		alive = append(alive, begin(fmt.Sprint("server ", n)))
	}
	conn := dial(t, discover(t, testclient.Connect(t, testenv.Addr(t)+chroot)), config)

	calling, end := context.WithCancel(ctx)
	var callers sync.WaitGroup
	failed := 0
	for range 4 {
		callers.Go(func() {
			pause := time.NewTicker(2 * time.Millisecond)
			defer pause.Stop()
			for calling.Err() == nil {
				id, err := ask(ctx, conn)
				mu.Lock()
				if err != nil {
					failed++
					t.Errorf("a call failed: %v", err)
				} else {
					processes[id].answered()
					calls[id]++
				}
				mu.Unlock()
				<-pause.C
			}
		})
	}
	defer callers.Wait()
	defer end()
	isCalled := func(id string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return calls[id] > 0
		}
	}
	for _, p := range alive {
		testenv.Eventually(t, isCalled(p.id), p.id+" is called")
	}
	next := time.NewTicker(pace)
	defer next.Stop()
	for n := range turns {
		<-next.C
		victim := alive[n%3]
		id := victim.id
		if n%4 < 3 {
			victim.kill(t)
			id = fmt.Sprintf("server %d of turn %d", n%3, n) // that of the dead is taken until its session has ended
		} else {
			victim.drain(t)
		}
		alive[n%3] = begin(id)
		testenv.Eventually(t, isCalled(id), id+" is called")
	}
	end()
	callers.Wait()
	all := 0
	for _, n := range calls {
		all += n
	}
	t.Logf("%d turns, %d calls, %d failed", turns, all, failed)
}

func TestCallsOfAServiceWithoutInstances(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	for _, policy := range []string{"pick_first", "round_robin"} {
		_, err := ask(ctx, dial(t, d, fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, policy)))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", policy, err)
		}
	}
	conn, answered := dial(t, d, config), make(chan error, 1)
	go func() {
		_, err := ask(ctx, conn)
		answered <- err
	}()
	conn.Connect()
	start(t, chroot, "first")
	testclient.Must(t, <-answered)
}

// accepting counts the connections of a server.
type accepting struct {
	net.Listener
	n atomic.Int32
}

func (l *accepting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

func TestNewPayloadClosesNoConnection(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	lis := &accepting{Listener: listen(t)}
	i := orders("a", lis.Addr().(*net.TCPAddr).Port)
	i.Address = "127.0.0.1"
	serve(t, newServer(func(context.Context) (string, error) { return "a", nil }), lis, d, i)
	var conns []*grpc.ClientConn
	for _, policy := range []string{"pick_first", "round_robin"} {
		conns = append(conns, dial(t, d, fmt.Sprintf(
			`{"loadBalancingConfig": [{%q: {}}], "methodConfig": [{"name": [{}], "waitForReady": true}]}`, policy)))
	}
	for n := range 10 {
		for _, conn := range conns {
			_, err := ask(ctx, conn)
			testclient.Must(t, err)
		}
		i.Payload = fmt.Sprint(n)
		testclient.Must(t, d.Update(ctx, i))
	}
	if n := lis.n.Load(); n != 2 {
		t.Errorf("%d connections, not 2", n)
	}
}

func TestIdleConnectionComesBack(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	start(t, chroot, "first")
	conn, err := grpc.NewClient("zk:///orders", grpc.WithResolvers(grpcresolver.New(d)),
		grpc.WithDefaultServiceConfig(config), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(10*time.Millisecond))
	testclient.Must(t, err)
	defer conn.Close() //nolint:errcheck // of the test
	for range 3 {
		_, err := ask(ctx, conn)
		testclient.Must(t, err)
		testenv.Eventually(t, func() bool { return conn.GetState() == connectivity.Idle }, "the connection is idle")
	}
}

// A call before ZooKeeper is there waits for it, and not for ever.
func TestCallsBeforeZooKeeperIsThere(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	start(t, chroot, "first")
	proxy, connect := testclient.Proxy(t, chroot)
	restore := proxy.Faults().RefuseConnects()
	d := discover(t, testclient.Start(t, connect, patient()...))
	hasty, err := grpc.NewClient("zk:///orders",
		grpc.WithResolvers(grpcresolver.New(d, grpcresolver.WithLoadTimeout(time.Millisecond))),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	testclient.Must(t, err)
	defer hasty.Close() //nolint:errcheck // of the test
	if _, err := ask(ctx, hasty); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	patient, answered := dial(t, d, config), make(chan error, 1)
	go func() {
		_, err := ask(ctx, patient)
		answered <- err
	}()
	restore()
	testclient.Must(t, <-answered)
}
