package simulation_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/retry"
)

// process is a client on a machine of its own, and the actors that use it.
type process struct {
	world  *world
	name   string
	client *framework.Client
	links  []*link // to each of the servers
	ahead  atomic.Int64
	dead   atomic.Bool
	left   atomic.Bool // its client was closed whatever the actors had

	mu        sync.Mutex
	sessions  map[int64]bool
	suspended time.Time // when it was without a connection the last time

	ctx    context.Context // of the actors
	cancel context.CancelFunc
	actors sync.WaitGroup
}

// newProcess starts a process.
func newProcess(w *world, name string) *process {
	p := &process{world: w, name: name, sessions: map[int64]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	random := w.random(name)
	for _, s := range w.cluster.Servers() {
		p.links = append(p.links, newLink(s, random.Uint64()))
	}
	// The client tries the servers in an order of its own, which no seed decides. So it gets them in another one.
	order := random.Perm(len(p.links))
	var dials atomic.Int64
	policy := retry.NTimes(3, time.Second)
	if random.IntN(2) == 0 {
		policy = retry.Forever(700 * time.Millisecond)
	}
	jitter := rand.New(rand.NewPCG(random.Uint64(), 0))
	client, err := framework.New(w.cluster.ConnectString(),
		framework.WithSessionTimeout(sessionTimeout),
		framework.WithConnectionTimeout(connectionTimeout),
		framework.WithRetryPolicy(policy),
		framework.WithEnsembleTracker(false),
		framework.WithDefaultData(nil),
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
	client.ConnectionStateListeners().AddListener(func(_ context.Context, s framework.ConnectionState) {
		w.history.note("%s is %v, session %#x", name, s, client.SessionID())
		p.is(s, client.SessionID())
	})
	p.client = client
	return p
}

// act runs an actor for each of the recipes that the process takes part in.
func (p *process) act(recipes []recipe) {
	for _, r := range recipes {
		for _, act := range r.actors {
			name := p.name + "/" + act.name
			a := &actor{process: p, name: name, role: act.name, random: p.world.random(name)}
			p.world.began(a)
			p.actors.Go(func() {
				defer p.world.ended(a)
				a.pause(p.ctx, nil, time.Second)
				act.run(p.ctx, a)
			})
		}
	}
}

// is notes the state of the connection.
func (p *process) is(s framework.ConnectionState, session int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.IsConnected() {
		p.suspended = time.Now()
		return
	}
	p.sessions[session] = true
	p.world.has(p, session)
}

// had reports whether the process has a session, or has had it.
func (p *process) had(session int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[session]
}

// wasSuspended reports whether the process was without a connection at some time since then.
func (p *process) wasSuspended(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.suspended.Before(since)
}

// crash ends the process as a loss of power does, or, if its kernel lives, as a kill does: then the servers see its
// connections end.
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

// leave ends the process with the goodbye of its client, whatever its actors hold.
func (p *process) leave() {
	p.left.Store(true)
	_ = p.client.Close()
	p.end()
}

// processEndLimit is until nothing of a process runs, whatever its network does.
const processEndLimit = 3 * time.Minute

// end waits until nothing of the process runs.
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
	_ = p.client.Close()
}

// closeNetwork ends all that is left of the connections.
func (p *process) closeNetwork() {
	for _, l := range p.links {
		l.close()
	}
}
