package simulation_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/zkpath"
)

// registered is a registered instance as a keptNode, with a cache of its service.
type registered struct {
	discovery *discovery.ServiceDiscovery[[]byte]
	cache     *discovery.ServiceCache[[]byte]
	path      string // of the service

	mu       sync.Mutex
	instance discovery.ServiceInstance[[]byte]
}

// payload has the payload of an instance as the bytes of its node: so the judge knows the node.
type payload struct{}

func (payload) Encode(i discovery.ServiceInstance[[]byte]) ([]byte, error) { return i.Payload, nil }

func (payload) Decode(data []byte) (i discovery.ServiceInstance[[]byte], err error) {
	i.Payload = data
	return i, nil
}

func newRegistered(client *framework.Client, path, id string, typ discovery.ServiceType, data []byte) *registered {
	r := &registered{path: path}
	r.discovery = discovery.New[[]byte](client, zkpath.Parent(path), discovery.WithSerializer(payload{}))
	r.cache = r.discovery.Cache(zkpath.Node(path))
	r.instance = discovery.ServiceInstance[[]byte]{Name: zkpath.Node(path), ID: id, Type: typ, Payload: data}
	return r
}

// register registers an instance for a while, again and again.
func (d *desiredNodes) register(ctx context.Context, a *actor) {
	for turn := 1; ctx.Err() == nil; turn++ {
		last := d.world.isCalm()
		name := fmt.Sprintf("%s.%d", a.name, turn)
		typ := discovery.Dynamic
		if a.random.IntN(3) == 0 {
			typ = discovery.DynamicSequential
		}
		r := newRegistered(a.client, d.service, a.process.slot(), typ, dataOf(name, 1))
		d.desire(ctx, a, a.random, last, &desire{name: name, ephemeral: true, node: r})
		if last {
			return
		}
		a.pause(ctx, d.world.calm, within(a.random, sessionTimeout))
	}
}

// AddListener adds no listener: a registration has no events.
func (*registered) AddListener(func(context.Context, nodes.Event)) (remove func()) { return func() {} }

func (r *registered) Start() error {
	if err := r.discovery.Start(); err != nil {
		return err
	}
	ended, cancel := context.WithCancel(context.Background()) // it has ended
	cancel()
	_ = r.cache.Start(ended)
	_ = r.discovery.Register(ended, r.get()) // it is registered as soon as possible
	return nil
}

func (r *registered) WaitForInitialCreate(ctx context.Context) error {
	return r.discovery.Register(ctx, r.get())
}

func (r *registered) SetData(ctx context.Context, data []byte) error {
	r.mu.Lock()
	r.instance.Payload = data
	r.mu.Unlock()
	return r.discovery.Update(ctx, r.get())
}

func (r *registered) get() discovery.ServiceInstance[[]byte] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance
}

func (*registered) Err() error { return nil }

func (r *registered) Close(ctx context.Context) error { return r.discovery.Close(ctx) }

// known returns the bytes of the instances that the cache has, by the names of their nodes.
func (r *registered) known() map[string][]byte {
	known := make(map[string][]byte)
	for _, e := range r.cache.Entries() {
		known[zkpath.Node(e.Path)] = e.Instance.Payload
	}
	return known
}
