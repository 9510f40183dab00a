package grpcresolver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/grpcresolver"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// serve runs Serve until the end of the test.
func serve(
	t *testing.T, server *grpc.Server, lis net.Listener, d *services, i instance, opts ...grpcresolver.ServeOption,
) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	result := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { result <- grpcresolver.Serve(ctx, server, lis, d, i, opts...) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return cancel, result
}

func named(id string) instance {
	i := discovery.NewServiceInstance[string]("orders", "", 0)
	i.ID = id
	return i
}

func TestServeDrainsBeforeItUnregisters(t *testing.T) {
	const pause = 3 * time.Second
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, reader, writer *framework.Client) {
		cache := discover(t, reader).Cache("orders")
		testclient.Must(t, cache.Start(testenv.Context(t)))
		changes := make(chan discovery.Change[string], 10)
		cache.AddListener(func(_ context.Context, change discovery.Change[string]) { changes <- change })
		stop, ended := serve(t, newServer(nil), bufconn.Listen(1), discover(t, writer), orders("a", 80),
			grpcresolver.WithPause(pause))
		ctx := testenv.Context(t)
		next := func() (change discovery.Change[string]) {
			t.Helper()
			select {
			case change = <-changes:
			case <-ctx.Done():
				t.Fatal("no change")
			}
			return change
		}
		if change := next(); change.Instance.Disabled || change.Gone {
			t.Errorf("before the end: %+v", change)
		}
		<-time.After(time.Second) // others see the instance before its server knows that they do
		stop()
		began := time.Now()
		if change := next(); !change.Instance.Disabled || change.Gone {
			t.Errorf("before the pause: %+v", change)
		}
		if change := next(); !change.Gone {
			t.Errorf("behind the pause: %+v", change)
		}
		if took := time.Since(began); took < pause {
			t.Errorf("the pause took %v", took)
		}
		testclient.Must(t, <-ended)
	})
}

func TestServeWaitsForCallsUnderWay(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	entered, finish := make(chan struct{}, 10), make(chan struct{})
	server := newServer(func(context.Context) (string, error) {
		entered <- struct{}{}
		<-finish
		return "done", nil
	})
	lis := listen(t)
	stop, ended := serve(t, server, lis, d, named("a"), grpcresolver.WithPause(time.Millisecond),
		grpcresolver.WithDeadline(time.Hour))
	conn, answers := dial(t, d, config), make(chan error, 1)
	go func() {
		_, err := ask(ctx, conn)
		answers <- err
	}()
	<-entered
	found, err := d.Instances(ctx, "orders")
	testclient.Must(t, err)
	if got := net.JoinHostPort(found[0].Address, fmt.Sprint(found[0].Port)); got != lis.Addr().String() {
		t.Errorf("registered at %s, listens at %s", got, lis.Addr())
	}
	stop()
	testenv.Eventually(t, func() bool {
		found, err := d.Instances(ctx, "orders")
		return err == nil && len(found) == 0
	}, "the instance is gone")
	select {
	case err := <-ended:
		t.Errorf("a call is under way, and Serve returns %v", err)
	default:
	}
	close(finish)
	testclient.Must(t, <-answers)
	testclient.Must(t, <-ended)
	if _, err := net.Dial("tcp", lis.Addr().String()); err == nil {
		t.Error("the server still listens")
	}
}

func TestServeEndsCallsAtTheDeadline(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	entered := make(chan struct{}, 10)
	server := newServer(func(ctx context.Context) (string, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	stop, ended := serve(t, server, listen(t), d, named("a"),
		grpcresolver.WithPause(0), grpcresolver.WithDeadline(time.Second))
	conn, answers := dial(t, d, `{}`), make(chan error, 1)
	testenv.Eventually(t, func() bool {
		found, err := d.Instances(ctx, "orders")
		return err == nil && len(found) == 1
	}, "the server is registered")
	go func() {
		_, err := ask(ctx, conn)
		answers <- err
	}()
	<-entered
	stop()
	wantErr(t, <-ended, context.DeadlineExceeded)
	if err := <-answers; err == nil {
		t.Error("the call has an answer")
	}
}

func TestServeUnregistersAServerThatIsStopped(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	d := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	for id, stop := range map[string]func(*grpc.Server, net.Listener){
		"stopped":         func(server *grpc.Server, _ net.Listener) { server.Stop() },
		"without network": func(_ *grpc.Server, lis net.Listener) { _ = lis.Close() },
	} {
		server, lis := newServer(nil), listen(t)
		_, ended := serve(t, server, lis, d, named(id))
		registered := func() bool {
			found, err := d.Instances(ctx, "orders")
			return err == nil && slices.ContainsFunc(found, func(i instance) bool { return i.ID == id })
		}
		testenv.Eventually(t, registered, "the server is registered")
		stop(server, lis)
		if err := <-ended; (err == nil) != (id == "stopped") {
			t.Errorf("%s: Serve returns %v", id, err)
		}
		if registered() {
			t.Errorf("%s is still registered", id)
		}
	}
}

// Serve ends at its deadline, and the instance is not there when the connection is back.
func TestServeWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	reader := discover(t, testclient.Connect(t, testenv.Addr(t)+chroot))
	proxy, connect := testclient.Proxy(t, chroot)
	d := discover(t, testclient.Start(t, connect, patient()...))
	answer := func(context.Context) (string, error) { return "a", nil }
	short := []grpcresolver.ServeOption{
		grpcresolver.WithPause(time.Millisecond), grpcresolver.WithDeadline(100 * time.Millisecond),
	}
	count := func(want int) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			found, err := reader.Instances(ctx, "orders")
			return err == nil && len(found) == want
		}, fmt.Sprint(want, " instances"))
	}
	stop, ended := serve(t, newServer(answer), listen(t), d, named("a"), short...)
	count(1)
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	stop()
	wantErr(t, <-ended, context.DeadlineExceeded)

	// Neither does one begin that has ended before.
	stop, ended = serve(t, newServer(answer), listen(t), d, named("b"), short...)
	stop()
	if err := <-ended; err != nil { // it may not have been under way
		wantErr(t, err, context.DeadlineExceeded)
	}

	// One that has not ended is there as soon as ZooKeeper is.
	serve(t, newServer(answer), listen(t), d, named("c"))
	restore()
	testenv.Eventually(t, func() bool {
		found, err := reader.Instances(ctx, "orders")
		return err == nil && len(found) == 1 && found[0].ID == "c"
	}, "c is registered, and a and b are gone")
}

func TestServeRefusesBadArguments(t *testing.T) {
	t.Parallel()
	d := discover(t, testclient.Connect(t, testenv.ConnectString(t)))
	everywhere := func() net.Listener {
		lis, err := net.Listen("tcp", "0.0.0.0:0")
		testclient.Must(t, err)
		return lis
	}
	socket := func() net.Listener {
		lis, err := net.Listen("unix", t.TempDir()+"/s")
		testclient.Must(t, err)
		return lis
	}
	bad, addressed := framework.ErrBadArguments, named("a")
	addressed.Address = "10.0.0.7"
	for name, tt := range map[string]struct {
		lis  net.Listener
		i    instance
		opts []grpcresolver.ServeOption
		want error
	}{
		"no address":       {everywhere(), named("a"), nil, bad},
		"no port":          {socket(), addressed, nil, bad},
		"too long a pause": {listen(t), named("a"), []grpcresolver.ServeOption{grpcresolver.WithPause(time.Hour)}, bad},
		"no name":          {listen(t), instance{ID: "a", Address: "10.0.0.7", Port: 1}, nil, zk.ErrInvalidPath},
	} {
		err := grpcresolver.Serve(t.Context(), newServer(nil), tt.lis, d, tt.i, tt.opts...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tt.lis.Accept(); err == nil {
			t.Errorf("%s: the listener is open", name)
		}
	}
}
