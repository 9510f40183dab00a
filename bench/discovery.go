package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/discovery"
)

// discoveryWork measures service discovery. The window is the number of instances.
var discoveryWork = section{
	workloads: map[string]workload{
		instancesReturn: runInstancesReturn, instanceSeen: runInstanceSeen, instancePick: runInstancePick,
	},
	rows: []row{
		{
			// With one server in its connect string Java would wait a second longer before it connects again.
			name: "1000 instances of 50 services, back after the end of the session", server: realServer, servers: 3,
			stretch: 4, show: []metric{p50, p99, requests},
			entries: against(work(instancesReturn), curator, javas),
			budget:  []bound{atMost(0.2, p50).of(javas), atMost(100, requests)},
		},
		{
			name: "instance, from Register to each of 100 watching clients", server: realServer, stretch: 4,
			show:    []metric{p50, p99, cpu},
			entries: against(work(instanceSeen).threads(100), curator, javas),
			budget:  []bound{atMost(1, p99).of(javas).at(p50)},
		},
		{
			name: "pick of 1000 instances", server: realServer, show: throughput,
			entries: against(work(instancePick), curator, javas),
			budget:  []bound{atMost(0.1, cpu), atMost(0.01, allocs)}, // the few are of the rest of the process
		},
	},
}

// services is the number of services of the instances that come back. Java has as many.
const services = 50

// runInstancesReturn registers instances with one client and ends its session, again and again. The latency is from
// the first deleted instance until all are there again. Another client observes both.
func runInstancesReturn(ctx context.Context, t *target, l load) (r result, err error) {
	var all []discovery.ServiceInstance[string]
	var names []string
	for i := range l.Window {
		one := newInstance("service-"+strconv.Itoa(i%services), i, l)
		all, names = append(all, one), append(names, one.Name+"/"+one.ID)
	}
	k, err := t.keep(ctx, names)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.close(ctx)) }()
	d, err := k.client.discover(k.parent)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	if err := registerAll(ctx, d, all); err != nil {
		return r, err
	}
	if err := k.awaitComplete(ctx); err != nil {
		return r, err
	}
	return k.measure(ctx, l), nil
}

// runInstanceSeen registers an instance with one client while as many others as there are threads watch the service,
// and takes it out again when all have seen it. The latency is from the call until the listener of a client has it. An
// operation is an instance that a client has seen.
func runInstanceSeen(ctx context.Context, t *target, l load) (r result, err error) {
	path, registrar, err := t.discovery(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, registrar.Close(ctx), t.clients[0].removeTree(ctx, path)) }()
	one := newInstance("service", 0, l)
	seen, gone := make(chan time.Time, l.Threads), make(chan time.Time, l.Threads)
	for i := range l.Threads {
		watcher, err := t.ownClient(ctx, 1+i)
		if err != nil {
			return r, err
		}
		d, err := watcher.discover(path)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, d.Close(ctx)) }()
		c := d.Cache(one.Name)
		c.AddListener(func(_ context.Context, change discovery.Change[string]) {
			if change.Gone {
				gone <- time.Now()
			} else {
				seen <- time.Now()
			}
		})
		if err := c.Start(ctx); err != nil {
			return r, err
		}
	}
	var latencies tracker
	comeAndGo := func() (time.Duration, error) {
		start := time.Now()
		if err := registrar.Register(ctx, one); err != nil {
			return -1, err
		}
		for range l.Threads {
			at, err := receive(ctx, seen)
			if err != nil {
				return -1, err
			}
			latencies.add(at.Sub(start))
		}
		if err := registrar.Unregister(ctx, one); err != nil {
			return -1, err
		}
		for range l.Threads {
			if _, err := receive(ctx, gone); err != nil {
				return -1, err
			}
		}
		return -1, nil
	}
	if _, err := comeAndGo(); err != nil { // the first one creates the node of the service
		return r, err
	}
	latencies = tracker{}
	r = loop(l.duration(), []operation{comeAndGo})
	latencies.report(&r)
	return r, nil
}

// picksAtOnce is the number of picks between two looks at the time.
const picksAtOnce = 1000

// runInstancePick picks one of the instances of a service, in turn, again and again.
func runInstancePick(ctx context.Context, t *target, l load) (r result, err error) {
	path, d, err := t.discovery(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close(ctx), t.clients[0].removeTree(ctx, path)) }()
	var all []discovery.ServiceInstance[string]
	for i := range l.Window {
		all = append(all, newInstance("service", i, l))
	}
	if err := registerAll(ctx, d, all); err != nil {
		return r, err
	}
	p := d.Provider("service")
	if err := p.Start(ctx); err != nil {
		return r, err
	}
	if n := len(p.AllInstances()); n != len(all) {
		return r, fmt.Errorf("the provider has %d instances of %d", n, len(all))
	}
	picks := func() (time.Duration, error) {
		for range picksAtOnce {
			pick, err := p.Pick(ctx)
			if err != nil {
				return -1, err
			}
			pick.Done(nil)
		}
		return -1, nil
	}
	r = loop(l.duration(), []operation{picks})
	r.Ops *= picksAtOnce
	return r, nil
}

// newInstance returns an instance with a number and a payload of the usual size.
func newInstance(service string, number int, l load) discovery.ServiceInstance[string] {
	i := discovery.NewServiceInstance[string](service, "10.0.0.1", 8080)
	i.ID, i.Payload = "instance-"+strconv.Itoa(number), strings.Repeat("x", l.Payload)
	return i
}

// discover returns a discovery of a client.
func (c curatorClient) discover(path string) (*discovery.ServiceDiscovery[string], error) {
	d := discovery.New[string](c.Client, path)
	return d, d.Start()
}

// discovery returns the discovery of the first client, below a new node.
func (t *target) discovery(ctx context.Context) (path string, d *discovery.ServiceDiscovery[string], err error) {
	c, err := t.ownClient(ctx, 0)
	if err != nil {
		return "", nil, err
	}
	if path, err = t.node(ctx, "services", nil); err != nil {
		return "", nil, err
	}
	d, err = c.discover(path)
	return path, d, err
}

// registerAll registers instances, all at once.
func registerAll(
	ctx context.Context, d *discovery.ServiceDiscovery[string], all []discovery.ServiceInstance[string],
) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = d.Register(ctx, one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
