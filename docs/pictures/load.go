package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
)

// When something happens in the run.
const (
	leaderDies    = 60 * time.Second
	leaderIsBack  = 90 * time.Second
	sessionEnds   = 120 * time.Second
	workIsSlow    = 150 * time.Second
	workIsNormal  = 180 * time.Second
	runEnds       = 240 * time.Second
	slowFactor    = 25
	jobTakes      = 20 * time.Millisecond
	jobInterval   = 100 * time.Millisecond
	readInterval  = 25 * time.Millisecond
	writeInterval = 500 * time.Millisecond
)

const (
	settingsPath = "/shop/settings"
	ordersPath   = "/shop/orders"
)

// event is a moment of the run, and its mark in the charts.
type event struct {
	at   time.Duration
	mark string
}

// load is an ensemble of Apache ZooKeeper and three clients, each with metrics of its own as if it were a process.
type load struct {
	ensemble  *curatortest.RealCluster
	processes []*process
	slow      atomic.Bool // work takes longer
}

func newLoad() (*load, error) {
	ensemble, err := curatortest.NewRealCluster(3)
	if err != nil {
		return nil, err
	}
	l := &load{ensemble: ensemble}
	for _, name := range []string{"shop-1", "shop-2", "shop-3"} {
		p, err := newProcess(l, name)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.processes = append(l.processes, p)
	}
	return l, nil
}

func (l *load) close() (err error) {
	for _, p := range l.processes {
		err = errors.Join(err, p.close())
	}
	return errors.Join(err, l.ensemble.Close())
}

// run has the processes work, and the faults happen.
func (l *load) run(ctx context.Context) ([]event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := l.processes[0].client
	for _, path := range []string{settingsPath, ordersPath} {
		if _, err := first.Create().CreatingParentsIfNeeded().ForPath(ctx, path, nil); err != nil {
			return nil, err
		}
	}
	var working sync.WaitGroup
	defer func() {
		cancel()
		working.Wait()
	}()
	for i, p := range l.processes {
		if err := p.start(ctx, &working, i == 0); err != nil {
			return nil, err
		}
	}
	var killed *curatortest.RealServer
	start := time.Now()
	for _, step := range []struct {
		at time.Duration
		do func() error
	}{
		{leaderDies, func() (err error) {
			if killed, err = l.ensemble.Leader(); err != nil {
				return err
			}
			return killed.Kill()
		}},
		{leaderIsBack, func() error { return killed.Launch() }},
		{sessionEnds, l.endSessionOfLeader},
		{workIsSlow, func() error { l.slow.Store(true); return nil }},
		{workIsNormal, func() error { l.slow.Store(false); return nil }},
		{runEnds, func() error { return nil }},
	} {
		select {
		case <-time.After(time.Until(start.Add(step.at))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("at %v: %w", step.at, err)
		}
	}
	return []event{{leaderDies, "1"}, {sessionEnds, "2"}, {workIsSlow, "3"}, {workIsNormal, "4"}}, nil
}

func (l *load) endSessionOfLeader() error {
	for _, p := range l.processes {
		if p.latch.HasLeadership() {
			return l.ensemble.ExpireSession(p.client.SessionID())
		}
	}
	return errors.New("no process leads")
}

// process is one instance of the program.
type process struct {
	load    *load
	name    string
	metrics string // where Prometheus finds them
	server  *http.Server
	client  *framework.Client
	latch   *leader.LeaderLatch
	cache   *cache.CuratorCache
	queue   *queue.DistributedQueue[int]
}

func newProcess(l *load, name string) (*process, error) {
	reader := sdkmetric.NewManualReader()
	server, addr, err := serveMetrics(reader)
	if err != nil {
		return nil, err
	}
	p := &process{load: l, name: name, metrics: addr, server: server}
	p.client, err = framework.New(l.ensemble.ConnectString(), framework.WithName("shop"),
		framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		framework.WithSessionTimeout(10*time.Second),
		framework.WithRetryPolicy(retry.ExponentialBackoff(100*time.Millisecond, 5)))
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	p.latch = leader.NewLeaderLatch(p.client, "/shop/leader", leader.WithName("planner"), leader.WithID(name))
	p.cache = cache.NewCuratorCache(p.client, settingsPath, cache.WithName("settings"))
	builder := queue.NewBuilder(p.client, p.work, codec.JSON[int]{}, "/shop/jobs").LockPath("/shop/job-locks").
		Name("jobs").Prefetch(1)
	if len(l.processes) == 0 {
		builder = builder.MeasureDepth() // in one process only
	}
	if p.queue, err = builder.BuildQueue(); err == nil {
		err = p.client.Start()
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

// work is that of an item of the queue.
func (p *process) work(ctx context.Context, _ int) error {
	takes := jobTakes
	if p.load.slow.Load() {
		takes *= slowFactor
	}
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start begins all that the process does until ctx ends. One process writes what the others read.
func (p *process) start(ctx context.Context, working *sync.WaitGroup, writes bool) error {
	if err := errors.Join(p.latch.Start(), p.cache.Start(), p.queue.Start()); err != nil {
		return err
	}
	mu := locks.NewInterProcessMutex(p.client, "/shop/lock", locks.WithName("orders"))
	for range 2 {
		p.every(ctx, working, 50*time.Millisecond, func(int) error {
			return locks.Do(ctx, mu, func(ctx context.Context) error {
				_, err := locks.HoldOf(ctx).Client().SetData().ForPath(ctx, ordersPath, []byte(p.name))
				return err
			})
		})
	}
	ignore := func(context.Context, callbacks.Event) {}
	p.every(ctx, working, readInterval, func(int) error {
		return p.client.GetData().InBackground(ignore).ForPath(ctx, ordersPath)
	})
	if !writes {
		return nil
	}
	p.every(ctx, working, writeInterval, func(i int) error {
		_, err := p.client.Create().OrSetData().ForPath(ctx, fmt.Sprintf("%s/s-%d", settingsPath, i%50), []byte("on"))
		return err
	})
	p.every(ctx, working, jobInterval, func(i int) error { return p.queue.Put(ctx, i) })
	return nil
}

// every calls do again and again until ctx ends.
func (p *process) every(ctx context.Context, working *sync.WaitGroup, pause time.Duration, do func(i int) error) {
	working.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = do(i) // the picture shows what fails
			select {
			case <-time.After(pause/2 + rand.N(pause)):
			case <-ctx.Done():
			}
		}
	})
}

func (p *process) close() error {
	return errors.Join(p.queue.Close(), p.cache.Close(), p.latch.Close(), p.client.Close(), p.server.Close())
}
