package grpcresolver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/grpcresolver"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

const base = "/services"

type (
	services = discovery.ServiceDiscovery[string]
	instance = discovery.ServiceInstance[string]
)

// patient are the options of a client whose session may end, and which goes on.
func patient() []framework.Option {
	return []framework.Option{
		framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithRetryPolicy(retry.Forever(10 * time.Millisecond)),
	}
}

// discover returns a started discovery, which the end of the test closes.
func discover(t *testing.T, client *framework.Client) *services {
	t.Helper()
	d := discovery.New[string](client, base)
	testclient.Must(t, d.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
	return d
}

// orders returns an instance of the service "orders".
func orders(id string, port int) instance {
	i := discovery.NewServiceInstance[string]("orders", "10.0.0.7", port)
	i.ID = id
	return i
}

func targetOf(t *testing.T, target string) resolver.Target {
	t.Helper()
	u, err := url.Parse(target)
	testclient.Must(t, err)
	return resolver.Target{URL: *u}
}

// conn is what gRPC shows a resolver.
type conn struct {
	resolver.ClientConn
	t    *testing.T
	hold chan struct{} // if not nil, UpdateState waits for one of them before it returns

	mu     sync.Mutex
	states []resolver.State
	errs   []error
}

// build connects to the service "orders" until the end of the test.
func build(t *testing.T, d *services, opts ...grpcresolver.Option) *conn {
	t.Helper()
	c := &conn{t: t}
	t.Cleanup(c.build(d, opts...))
	return c
}

// build connects to the service "orders".
func (c *conn) build(d *services, opts ...grpcresolver.Option) (stop func()) {
	c.t.Helper()
	r, err := grpcresolver.New(d, opts...).Build(targetOf(c.t, "zk:///orders"), c, resolver.BuildOptions{})
	testclient.Must(c.t, err)
	r.ResolveNow(resolver.ResolveNowOptions{})
	return r.Close
}

func (c *conn) UpdateState(state resolver.State) error {
	c.mu.Lock()
	c.states = append(c.states, state)
	c.mu.Unlock()
	if c.hold != nil {
		<-c.hold
	}
	return errors.New("not ready") // gRPC says so often
}

func (c *conn) ReportError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// seen returns the states and errors so far.
func (c *conn) seen() ([]resolver.State, []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states), slices.Clone(c.errs)
}

// idsOf returns the sorted ids of the instances of a state.
func idsOf(state resolver.State) []string {
	ids := []string{}
	for _, e := range state.Endpoints {
		i, _ := grpcresolver.InstanceOf[string](e.Attributes)
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

// await waits until the newest state has the instances with these ids, and returns it.
func (c *conn) await(ids ...string) (state resolver.State) {
	c.t.Helper()
	testenv.Eventually(c.t, func() bool {
		states, _ := c.seen()
		if len(states) == 0 {
			return false
		}
		state = states[len(states)-1]
		return slices.Equal(idsOf(state), ids)
	}, fmt.Sprint("the instances are ", ids))
	return state
}

// awaitError waits for an error.
func (c *conn) awaitError(want error) {
	c.t.Helper()
	testenv.Eventually(c.t, func() bool {
		_, errs := c.seen()
		return slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, want) })
	}, fmt.Sprint("an error is reported: ", want))
}

// reconnected returns a channel that is closed when the client is connected again.
func reconnected(client *framework.Client) <-chan struct{} {
	again := make(chan struct{})
	reach := sync.OnceFunc(func() { close(again) })
	client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		if state == framework.Reconnected {
			reach()
		}
	})
	return again
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
