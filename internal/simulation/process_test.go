package simulation_test

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/retry"
)

// process is a machine with clients, and the actors that use them.
type process struct {
	world   *world
	name    string
	client  *framework.Client   // of queues, barriers and all recipes without a client of their own
	clients []*framework.Client // all
	links   []*link             // to each of the servers
	ahead   atomic.Int64
	dead    atomic.Bool
	acls    *provider
	left    atomic.Bool // its clients were closed while actors held something

	mu        sync.Mutex
	sessions  map[int64]bool
	suspended time.Time // the last time at which client had no connection

	ctx    context.Context // of the actors
	cancel context.CancelFunc
	actors sync.WaitGroup
}

// newProcess starts a process.
func newProcess(w *world, name string) *process {
	p := &process{world: w, name: name, sessions: map[int64]bool{}, acls: &provider{world: w}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	random := w.random(name)
	for _, s := range w.cluster.Servers() {
		p.links = append(p.links, newLink(s, random.Uint64()))
	}
	p.client = p.connect(random, name)
	return p
}

// ownClients is the event that a process has a client for one recipe.
const ownClients = "clients for one recipe"

// connect starts a client of the process.
func (p *process) connect(random *rand.Rand, name string) *framework.Client {
	return p.connectAt(random, name, "")
}

// connectAt starts a client of the process with a chroot.
func (p *process) connectAt(random *rand.Rand, name, chroot string) *framework.Client {
	w := p.world
	// The client shuffles its servers without the seed. So the seed shuffles the links.
	order := random.Perm(len(p.links))
	var dials atomic.Int64
	policy := retry.NTimes(3, time.Second)
	if random.IntN(2) == 0 {
		policy = retry.Forever(700 * time.Millisecond)
	}
	jitter := rand.New(rand.NewPCG(random.Uint64(), 0))
	client, err := framework.New(w.cluster.ConnectString()+chroot,
		framework.WithSessionTimeout(sessionTimeout),
		framework.WithConnectionTimeout(connectionTimeout),
		framework.WithRetryPolicy(policy),
		framework.WithoutEnsembleTracker(),
		framework.WithDefaultData(nil),
		framework.WithACLProvider(p.acls),
		framework.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.links[order[int(dials.Add(1))%len(order)]].dial(ctx)
		}),
		hook.WallClock(func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }).(framework.Option),
		hook.Jitter(func(most time.Duration) time.Duration { // of one session at a time
			return time.Duration(jitter.Int64N(int64(most) + 1))
		}).(framework.Option),
	)
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		panic(err) // the options are wrong
	}
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		w.history.note("%s is %v, session %#x", name, s, client.SessionID())
		if s.IsConnected() || name == p.name {
			p.setState(s, client.SessionID())
		}
	})
	p.clients = append(p.clients, client)
	return client
}

// act runs an actor for each of the recipes that the process takes part in. Some recipes get a client of their own, so
// that nothing else keeps its quorum heartbeats up.
func (p *process) act(recipes []recipe) {
	for _, r := range recipes {
		client := p.client
		name := p.name + " for " + r.name
		if r.chroot {
			client = p.connectAt(p.world.random(name), name, absent(p))
		} else if random := p.world.random(name); r.mayHaveClient && random.IntN(2) == 0 {
			client = p.connect(random, name)
			p.world.report.count(ownClients)
		}
		for _, act := range r.actors {
			name := p.name + "/" + act.name
			a := &actor{process: p, client: client, name: name, role: act.name, random: p.world.random(name)}
			p.world.began(a)
			p.actors.Go(func() {
				defer p.world.ended(a)
				a.pause(p.ctx, nil, time.Second)
				act.run(p.ctx, a)
			})
		}
	}
}

// slot returns the name of the place of the process, which the next one has too.
func (p *process) slot() string {
	slot, _, _ := strings.Cut(p.name, ".")
	return slot
}

// setState records the state of a connection.
func (p *process) setState(s framework.ConnectionState, session int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.IsConnected() {
		p.suspended = time.Now()
		return
	}
	p.sessions[session] = true
	p.world.has(p, session)
}

// had reports whether the process has or had a session.
func (p *process) had(session int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[session]
}

// wasSuspended reports whether client was without a connection at some moment since a time.
func (p *process) wasSuspended(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.suspended.Before(since)
}

// crash ends the process, like a loss of power, or like a kill if its kernel lives: then the servers get the end of its
// connections.
func (p *process) crash(kernelLives bool) {
	p.dead.Store(true)
	for _, l := range p.links {
		if kernelLives {
			l.close()
		} else {
			l.block(curatortest.Both)
		}
	}
	p.end()
}

// leave closes the clients of the process, whatever its actors hold, and ends the process.
func (p *process) leave() {
	p.left.Store(true)
	p.closeClients()
	p.end()
}

func (p *process) closeClients() {
	var closing sync.WaitGroup
	for _, client := range p.clients {
		closing.Go(func() { _ = client.Close() })
	}
	closing.Wait()
}

// processEndLimit bounds the end of a process, whatever its network does.
const processEndLimit = 3 * time.Minute

// end waits until no goroutine of the process runs.
func (p *process) end() {
	p.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.actors.Wait()
	}()
	timer := time.NewTimer(processEndLimit)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		p.world.violate("%s does not end in %v: %s", p.name, processEndLimit, p.world.running(p))
	}
	p.closeClients()
}

// closeNetwork ends all connections that are left.
func (p *process) closeNetwork() {
	for _, l := range p.links {
		l.close()
	}
}
