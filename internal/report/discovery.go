package report

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

// The outcomes of picks.
const (
	Picked     = "picked"
	NoInstance = "no_instance"
)

type serviceInstruments struct{ picks instrument.Counter }

var serviceKit = instrument.NewKit(func(d *instrument.Declarer) *serviceInstruments {
	declareServices(d)
	return &serviceInstruments{
		picks: d.Counter("curator.discovery.picks", "{pick}", "Instances that callers have asked for, by the outcome."),
	}
})

// Service records what the caches and providers of a service do.
type Service struct{ r resource }

// NewService returns the report of a service. name is that of the service.
func NewService(t *telemetry.Telemetry, name, path string) Service {
	return Service{resource{t: t, key: seriesKey{recipe: "service_discovery", name: name}, path: path}}
}

// Started begins the counters of the service with 0, so that a rate over them includes the first pick.
func (s *Service) Started(ctx context.Context) {
	for _, outcome := range []string{Picked, NoInstance} {
		s.pick(ctx, 0, outcome)
	}
}

// Pick counts an instance that a caller has asked for.
func (s *Service) Pick(ctx context.Context, outcome string) { s.pick(ctx, 1, outcome) }

func (s *Service) pick(ctx context.Context, n int, outcome string) {
	if in := serviceKit.Of(s.r.scope()); in != nil {
		in.picks.Add(ctx, n, s.r.measures().outcomes.Get(outcome))
	}
}

// ServiceState is what a process knows of a service at one moment.
type ServiceState struct {
	Known   int       // instances
	Down    int       // those of them that callers have noted errors of
	Changed time.Time // when the last change has arrived
}

// services has the services that a client follows.
type services struct {
	mu      sync.Mutex
	readers map[*serviceReader]struct{}
}

type serviceReader struct {
	s    *Service
	read func() ServiceState
}

// Observe makes the gauges show the results of read, until stop is called.
func (s *Service) Observe(read func() ServiceState) (stop func()) {
	if s.r.t == nil {
		return func() {}
	}
	all, r := instrument.Shared[services](s.r.scope()), &serviceReader{s, read}
	all.mu.Lock()
	if all.readers == nil {
		all.readers = make(map[*serviceReader]struct{})
	}
	all.readers[r] = struct{}{}
	all.mu.Unlock()
	s.r.scope().Measures() // declares the gauges before the first pick
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.readers, r)
	}
}

// declareServices declares the gauges of services.
func declareServices(d *instrument.Declarer) {
	g := d.Gauges()
	known := g.Size("curator.discovery.instances", "{instance}", "Instances of a service that the process knows.")
	down := g.Size("curator.discovery.down", "{instance}",
		"Instances of a service that the process does not pick because of errors that its callers have noted.")
	age := g.Age("curator.discovery.change.age", "Time since the process has seen the last change of a service.")
	scope := d.Scope()
	all := instrument.Shared[services](scope)
	g.Observe(func(_ context.Context, o metric.Observer) {
		for key, state := range all.read() {
			with := metric.WithAttributes(scope.Base(key.attributes()...)...)
			o.ObserveInt64(known, int64(state.Known), with)
			o.ObserveInt64(down, int64(state.Down), with)
			o.ObserveFloat64(age, max(time.Since(state.Changed).Seconds(), 0), with)
		}
	})
}

// read returns the states of the services. Of the caches and providers of one service, the largest numbers and the
// newest change are shown: all follow the same nodes.
func (all *services) read() map[seriesKey]ServiceState {
	all.mu.Lock()
	defer all.mu.Unlock()
	states := make(map[seriesKey]ServiceState)
	for r := range all.readers {
		now, key := r.read(), r.s.r.key
		key.name = instrument.Shared[allSeries](r.s.r.scope()).names.Bounded(key.name)
		state := states[key]
		state.Known, state.Down = max(state.Known, now.Known), max(state.Down, now.Down)
		if now.Changed.After(state.Changed) {
			state.Changed = now.Changed
		}
		states[key] = state
	}
	return states
}
