package framework_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// gatedNetwork is a network that can be down.
type gatedNetwork struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

var errDown = errors.New("the network is down")

func (g *gatedNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return nil, errDown
	}
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		g.conns = append(g.conns, nc)
	}
	return nc, err
}

func (g *gatedNetwork) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	for _, nc := range g.conns {
		_ = nc.Close()
	}
	g.conns = nil
}

// Operations of the background that are submitted before and during an outage are all done after it: none fails, no
// goroutine waits for them one by one, and each takes little memory. What that takes is in the log; make bench has it
// too.
func TestOutageWithManyOperations(t *testing.T) {
	total := testenv.Size(50_000, 50_000, 1_000_000)
	server, err := nullserver.New()
	must(t, err)
	defer server.Close()
	network := new(gatedNetwork)
	client := newClient(t, server.Addr(), framework.WithDialer(network.dial),
		framework.WithSessionTimeout(5*time.Minute), framework.WithConnectionTimeout(5*time.Minute)) // of a busy machine
	states := make(chan framework.ConnectionState, 100)
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) { states <- s })
	start(t, client)
	ctx := testenv.Context(t)
	must(t, client.BlockUntilConnected(ctx))
	goroutines := runtime.NumGoroutine()

	var failed, done atomic.Int64
	all := make(chan struct{})
	operation := client.Create().InBackground(func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			if failed.Add(1) < 4 {
				t.Log(ev.Err)
			}
		}
		if done.Add(1) == int64(total) {
			close(all)
		}
	})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	data := []byte("x")
	begin := time.Now()
	for n := range total {
		if n == total/100 {
			network.set(true)
		}
		must(t, operation.ForPath(ctx, "/node", data))
	}
	accepted := time.Since(begin)
	runtime.GC()
	runtime.ReadMemStats(&during)
	waiting := int64(total) - done.Load()
	each := (int64(during.HeapAlloc) - int64(before.HeapAlloc)) / max(waiting, 1)
	<-time.After(max(0, 3*time.Second-time.Since(begin)))
	peak := runtime.NumGoroutine()
	begin = time.Now()
	network.set(false)
	must(t, client.BlockUntilConnected(ctx))
	_, err = client.GetData().ForPath(ctx, "/node")
	must(t, err)
	first := time.Since(begin)
	select {
	case <-all:
	case <-ctx.Done():
		t.Fatalf("%d of %d are done", done.Load(), total)
	}
	t.Logf("%d operations accepted in %v; %d waited, with %d bytes each and %d goroutines; after the outage the first "+
		"read took %v and all %v", total, accepted, waiting, each, peak, first, time.Since(begin))
	if n := failed.Load(); n > 0 {
		t.Errorf("%d operations failed", n)
	}
	if peak > goroutines+10 {
		t.Errorf("%d goroutines, %d before", peak, goroutines)
	}
	if each > 1024 {
		t.Errorf("%d bytes for each operation that waits", each)
	}
	for len(states) > 0 {
		if s := <-states; s == framework.Lost {
			t.Error("the session is lost")
		}
	}
}
