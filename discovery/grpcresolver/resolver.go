package grpcresolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
)

// Scheme is that of the targets: "zk:///orders" is the service orders.
const Scheme = "zk"

// New returns a builder for grpc.WithResolvers. Each connection has a cache of its service from its first call on, and
// again after it was idle. Building one waits for nothing, and neither the servers nor the service need exist. The
// connections follow the service through losses of the ZooKeeper connection and session. See the documentation of the
// package for what they see.
func New[T any](d *discovery.ServiceDiscovery[T], opts ...Option) resolver.Builder {
	s := settings{loadTimeout: 5 * time.Second}
	for _, o := range opts {
		o(&s)
	}
	b := &builder[T]{discovery: d, settings: s}
	weight, ok := s.weight.(func(discovery.ServiceInstance[T]) uint32)
	switch {
	case s.weight != nil && !ok:
		b.err = fmt.Errorf("grpcresolver: %w: WithWeight takes other instances: %T", framework.ErrBadArguments, s.weight)
	case s.loadTimeout <= 0:
		b.err = fmt.Errorf("grpcresolver: %w: a load timeout of %v", framework.ErrBadArguments, s.loadTimeout)
	}
	b.weight = weight
	return b
}

type builder[T any] struct {
	discovery *discovery.ServiceDiscovery[T]
	settings  settings
	weight    func(discovery.ServiceInstance[T]) uint32 // or nil
	err       error                                     // returned by Build
}

func (b *builder[T]) Scheme() string { return Scheme }

func (b *builder[T]) Build(
	target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions,
) (resolver.Resolver, error) {
	if b.err != nil {
		return nil, b.err
	}
	if target.URL.Host != "" { // which many take for the service
		return nil, fmt.Errorf("grpcresolver: %w: the target %s has a host: write %s:///service", framework.ErrBadArguments,
			target, Scheme)
	}
	name := target.Endpoint()
	f := &follower[T]{
		builder: b, name: name, conn: cc, cache: b.discovery.Cache(name), seed: maphash.MakeSeed(),
		changed: make(chan context.Context, 1),
	}
	root := context.Background() //nolint:forbidigo // Close cancels it
	f.ctx, f.stop = context.WithCancel(root)
	f.running.Go(f.follow)
	return f, nil
}

// follower keeps a connection of gRPC informed of a service.
type follower[T any] struct {
	builder *builder[T]
	name    string // of the service
	conn    resolver.ClientConn
	cache   *discovery.ServiceCache[T]
	seed    maphash.Seed // of the order of the addresses

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup

	changed chan context.Context // of the listeners, once for many changes

	// Of the goroutine of follow.
	passed bool // whether conn has a state
	last   []resolver.Endpoint
	// weights has those of the last pass, by address.
	weights map[string]weighed[T]
}

// weighed is an instance with its weight.
type weighed[T any] struct {
	instance discovery.ServiceInstance[T]
	weight   uint32
}

// ResolveNow does nothing: changes come by themselves.
func (f *follower[T]) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the cache and waits for its goroutines.
func (f *follower[T]) Close() {
	f.stop()
	f.running.Wait()
}

// follow passes the instances on until Close. The first ones may be long in coming.
func (f *follower[T]) follow() {
	defer f.cache.Close() //nolint:errcheck // nil
	defer f.cache.AddListener(func(ctx context.Context, _ discovery.Change[T]) {
		select {
		case f.changed <- ctx:
		default: // the next pass has this change, too
		}
	})()
	loaded := make(chan error, 1)
	f.running.Go(func() { loaded <- f.load() })
	late := time.NewTicker(f.builder.settings.loadTimeout)
	defer late.Stop()
	for isLoaded := false; !f.passed; {
		select {
		case <-f.ctx.Done():
			return
		case err := <-loaded:
			if err != nil {
				f.report(err)
				return
			}
			isLoaded = true
		case <-f.changed:
		case <-late.C:
			if !isLoaded {
				f.report(cmp.Or(f.cache.Err(), errNotLoaded))
			}
		}
		if isLoaded {
			f.pass(f.ctx)
		}
	}
	late.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case listening := <-f.changed:
			f.pass(listening)
		}
	}
}

var errNotLoaded = errors.New("no answer from ZooKeeper yet")

// load waits until the instances are known. A program may start its client and its discovery later, and the chroot may
// be created later: the cache goes on without it.
func (f *follower[T]) load() error {
	for {
		err := f.cache.Start(f.ctx)
		if errors.Is(err, framework.ErrNoChroot) {
			return nil
		}
		if !errors.Is(err, framework.ErrNotStarted) { // of the discovery, or of its client
			return err
		}
		f.report(err)
		select {
		case <-time.After(f.builder.settings.loadTimeout):
		case <-f.ctx.Done():
		}
	}
}

// pass passes the instances on, unless the cache has been closed, which empties it. ctx ends before that.
func (f *follower[T]) pass(ctx context.Context) {
	instances := f.cache.Instances()
	if len(instances) == 0 {
		if err := f.cache.Err(); err != nil { // there may be some
			f.report(err)
			return
		}
	}
	endpoints, err := f.endpoints(instances)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		defer f.report(err) // behind the state, which may be empty for that reason
	}
	if f.passed && slices.EqualFunc(endpoints, f.last, equal) {
		return
	}
	f.passed, f.last = true, endpoints
	state := resolver.State{Endpoints: endpoints}
	for _, e := range endpoints { // policies that do not know endpoints find the attributes in the address
		address := e.Addresses[0]
		address.BalancerAttributes = e.Attributes //nolint:staticcheck // that is where gRPC puts them for such a policy
		state.Addresses = append(state.Addresses, address)
	}
	_ = f.conn.UpdateState(state) // another try would have the same addresses
}

// report lets calls fail that do not wait for ready, unless there are addresses.
func (f *follower[T]) report(err error) {
	f.conn.ReportError(fmt.Errorf("grpcresolver: service %q: %w", f.name, err))
}

// endpoints returns the endpoints of the instances that can be called, in the order of this connection. The error is
// that of the instances whose weight has failed, and which are left out.
func (f *follower[T]) endpoints(instances []discovery.ServiceInstance[T]) (endpoints []resolver.Endpoint, err error) {
	newest := make(map[string]discovery.ServiceInstance[T], len(instances))
	for _, i := range instances {
		port := i.Port
		if f.builder.settings.sslPort {
			port = i.SSLPort
		}
		if i.Disabled || i.Address == "" || port == 0 {
			continue
		}
		address := net.JoinHostPort(i.Address, strconv.Itoa(port))
		if other, ok := newest[address]; !ok || other.RegistrationTime.Before(i.RegistrationTime) {
			newest[address] = i
		}
	}
	weights, failed := make(map[string]weighed[T]), []error(nil)
	endpoints = make([]resolver.Endpoint, 0, len(newest))
	for address, i := range newest {
		e := resolver.Endpoint{
			Addresses:  []resolver.Address{{Addr: address}},
			Attributes: attributes.New(instanceKey{}, attribute[T]{i}),
		}
		if f.builder.weight != nil {
			w, known := f.weights[address]
			if !known || !w.instance.Equal(i) {
				w.instance = i
				if w.weight, err = f.weigh(i); err != nil {
					failed = append(failed, err)
				}
			}
			if weights[address] = w; w.weight == 0 {
				continue
			}
			e = weight.Set(e, weight.EndpointInfo{Weight: w.weight})
		}
		endpoints = append(endpoints, e)
	}
	slices.SortFunc(endpoints, func(a, b resolver.Endpoint) int {
		one, two := a.Addresses[0].Addr, b.Addresses[0].Addr
		return cmp.Or(cmp.Compare(maphash.String(f.seed, one), maphash.String(f.seed, two)), cmp.Compare(one, two))
	})
	f.weights = weights
	return endpoints, errors.Join(failed...)
}

// weigh asks the program for a weight on a goroutine of its own: one that blocks holds up this connection alone, and
// not its end. A weight that panics, or ends its goroutine, is 0.
func (f *follower[T]) weigh(i discovery.ServiceInstance[T]) (uint32, error) {
	type result struct {
		weight uint32
		err    error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("instance %s: the weight has ended its goroutine", i.ID)}
		defer func() {
			if value := recover(); value != nil {
				r.err = fmt.Errorf("instance %s: panic in the weight: %v", i.ID, value)
			}
			results <- r
		}()
		r = result{weight: f.builder.weight(i)}
	}()
	select {
	case r := <-results:
		return r.weight, r.err
	case <-f.ctx.Done():
		return 0, f.ctx.Err()
	}
}

func equal(a, b resolver.Endpoint) bool {
	return a.Addresses[0].Addr == b.Addresses[0].Addr && a.Attributes.Equal(b.Attributes)
}
