package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/report"
)

// ServiceProvider chooses one instance of a service for each call. It leaves out the instances that are disabled, that
// a filter refuses, and that are down because callers have noted errors of them. All methods are safe for concurrent
// use. In Java: ServiceProvider.
type ServiceProvider[T any] struct {
	cache    *ServiceCache[T]
	settings providerSettings[T]
	down     downInstances
	marks    atomic.Uint64 // counts the instances that have gone down

	current atomic.Pointer[choice[T]]
	mu      sync.Mutex // of making a choice
}

// choice has the candidates between two changes. It is immutable.
type choice[T any] struct {
	snapshot   *snapshot[T]
	marks      uint64
	until      time.Time // when an instance is not down any more; zero for none
	candidates []*Candidate[T]
	all        map[identity]*Candidate[T] // those that are out, too
	out        leftOut
}

// leftOut counts the nodes of a service that are no candidates, by the reason.
type leftOut struct{ noInstance, disabled, down, filtered int }

// ProviderOption configures a [ServiceProvider].
type ProviderOption[T any] interface{ applyTo(*providerSettings[T]) }

type providerSettings[T any] struct {
	strategy  Strategy[T]
	filters   []func(ServiceInstance[T]) bool
	timeout   time.Duration
	threshold int
}

type providerOption[T any] func(*providerSettings[T])

func (o providerOption[T]) applyTo(s *providerSettings[T]) { o(s) } //nolint:unused // Provider calls it

// WithStrategy sets the strategy. The default is [RoundRobin]. In Java: providerStrategy.
func WithStrategy[T any](strategy Strategy[T]) ProviderOption[T] {
	return providerOption[T](func(s *providerSettings[T]) { s.strategy = strategy })
}

// WithFilter adds a filter: only instances for which it returns true are chosen. It is called once for each change of
// the service, not for each choice. In Java: additionalFilter.
func WithFilter[T any](filter func(ServiceInstance[T]) bool) ProviderOption[T] {
	return providerOption[T](func(s *providerSettings[T]) { s.filters = append(slices.Clip(s.filters), filter) })
}

// WithDownInstancePolicy sets when an instance is down: for timeout, as soon as callers have noted threshold errors of
// it within timeout. The default is 30 seconds and 2 errors. In Java: downInstancePolicy, where the instance is down
// until the time since its first error is between 1 and 1.5 times the timeout.
func WithDownInstancePolicy[T any](timeout time.Duration, threshold int) ProviderOption[T] {
	return providerOption[T](func(s *providerSettings[T]) { s.timeout, s.threshold = timeout, threshold })
}

// Provider returns a provider of a service. It does no I/O. [ServiceDiscovery.Close] closes it. Start returns an error
// if the name or an option is invalid. In Java: serviceProviderBuilder.
func (d *ServiceDiscovery[T]) Provider(name string, opts ...ProviderOption[T]) *ServiceProvider[T] {
	p := &ServiceProvider[T]{
		cache:    d.Cache(name),
		settings: providerSettings[T]{strategy: RoundRobin[T](), timeout: 30 * time.Second, threshold: 2},
	}
	for _, o := range opts {
		o.applyTo(&p.settings)
	}
	p.cache.isDown = func(nodes *snapshot[T]) (n int) {
		for i, e := range nodes.entries {
			if _, isDown := p.down.isDown(identity{e.Path, nodes.nodes[i].Stat.Czxid}, time.Now()); isDown {
				n++
			}
		}
		return n
	}
	p.down.timeout, p.down.threshold = p.settings.timeout, p.settings.threshold
	if err := p.settings.validate(); err != nil && p.cache.err == nil {
		p.cache.err = err
	}
	return p
}

func (s *providerSettings[T]) validate() error {
	switch {
	case s.strategy == nil:
		return fmt.Errorf("%w: no strategy", framework.ErrBadArguments)
	case s.timeout < time.Millisecond || s.threshold < 1:
		return fmt.Errorf("%w: down after %d errors for %v", framework.ErrBadArguments, s.threshold, s.timeout)
	}
	return nil
}

// Start begins to follow the service: see [ServiceCache.Start]. In Java: start.
func (p *ServiceProvider[T]) Start(ctx context.Context) error {
	p.cache.report.Started(ctx)
	return p.cache.Start(ctx)
}

// Close ends the provider and always returns nil. A second Close does nothing. In Java: close.
func (p *ServiceProvider[T]) Close() error { return p.cache.Close() }

// Instance returns an instance, or [ErrNoInstance], whose text says how many there are and why none of them is chosen.
// It does no I/O and does not wait. In Java: getInstance, which returns null.
func (p *ServiceProvider[T]) Instance() (ServiceInstance[T], error) {
	c, err := p.choose()
	if err != nil {
		var none ServiceInstance[T]
		p.cache.report.Pick(p.cache.listening, report.NoInstance)
		return none, err
	}
	p.cache.report.Pick(p.cache.listening, report.Picked)
	return c.Instance, nil
}

// AllInstances returns the instances among which the provider chooses. In Java: getAllInstances.
func (p *ServiceProvider[T]) AllInstances() []ServiceInstance[T] {
	candidates := p.choice().candidates
	all := make([]ServiceInstance[T], len(candidates))
	for i, c := range candidates {
		all[i] = c.Instance
	}
	return all
}

// Pick is an instance that a caller uses until Done.
type Pick[T any] struct {
	Instance ServiceInstance[T]
	p        *ServiceProvider[T]
	chosen   *Candidate[T]
}

// Done ends the use of the instance. err is noted as [ServiceProvider.NoteError] does, unless it is nil. Call Done
// once.
func (k Pick[T]) Done(err error) {
	if k.chosen == nil {
		return
	}
	k.chosen.load.inFlight.Add(-1)
	if err != nil {
		k.p.noteError(k.chosen.identity)
	}
}

// Pick returns an instance and counts it as in flight until its Done is called. It waits until there is one. ctx bounds
// the wait: the error is that of ctx, joined with [ErrNoInstance]. Not in Java.
func (p *ServiceProvider[T]) Pick(ctx context.Context) (Pick[T], error) {
	for {
		c, err := p.choose()
		if errors.Is(err, ErrNoInstance) {
			changed := p.cache.nextChange()
			if c, err = p.choose(); errors.Is(err, ErrNoInstance) { // nothing has changed before nextChange
				if err := p.await(ctx, changed); err != nil {
					p.cache.report.Pick(ctx, report.NoInstance)
					return Pick[T]{}, err
				}
				continue
			}
		}
		if err != nil {
			return Pick[T]{}, err
		}
		p.cache.report.Pick(ctx, report.Picked)
		c.load.inFlight.Add(1)
		return Pick[T]{Instance: c.Instance, p: p, chosen: c}, nil
	}
}

// await waits until the service has changed or an instance is not down any more.
func (p *ServiceProvider[T]) await(ctx context.Context, changed <-chan struct{}) error {
	var up <-chan time.Time
	if until := p.choice().until; !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		up = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-up:
		return nil
	case <-ctx.Done():
		return errtext.Join(ctx.Err(), p.none())
	}
}

// NoteError notes that an instance has failed a caller. After some errors it is down for a time, and not chosen: see
// [WithDownInstancePolicy]. An instance that has registered anew, with another time, is up. In Java: noteError.
func (p *ServiceProvider[T]) NoteError(instance ServiceInstance[T]) {
	for id, c := range p.choice().all {
		isThis := c.Instance.ID == instance.ID
		if isThis && millisOf(c.Instance.RegistrationTime) == millisOf(instance.RegistrationTime) {
			p.noteError(id)
		}
	}
}

func (p *ServiceProvider[T]) noteError(id identity) {
	if p.down.note(id, time.Now()) {
		p.marks.Add(1)
	}
}

// choose returns a candidate.
func (p *ServiceProvider[T]) choose() (*Candidate[T], error) {
	if candidates := p.choice().candidates; len(candidates) > 0 {
		if c := p.settings.strategy.Choose(candidates); c != nil {
			return c, nil
		}
	}
	return nil, p.none()
}

// none returns why there is no instance.
func (p *ServiceProvider[T]) none() error {
	if err := p.cache.isRunning(); err != nil {
		return err
	}
	err := errtext.Wrap(ErrNoInstance, "discovery", "%s", p.cache.path)
	if c := p.choice(); len(c.snapshot.entries) > 0 {
		err = fmt.Errorf("%w: of %d nodes %d are no instance, %d disabled, %d down, %d filtered out, %d not chosen", err,
			len(c.snapshot.entries), c.out.noInstance, c.out.disabled, c.out.down, c.out.filtered, len(c.candidates))
	}
	return errtext.Join(err, p.cache.Err())
}

// choice returns the candidates as they are now. Nothing is allocated unless they have changed.
func (p *ServiceProvider[T]) choice() *choice[T] {
	nodes, marks := p.cache.snapshot(), p.marks.Load()
	if c := p.current.Load(); c.isOf(nodes, marks) {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.current.Load()
	if before.isOf(nodes, marks) {
		return before
	}
	now := p.sort(nodes, marks, before)
	p.current.Store(now)
	return now
}

func (c *choice[T]) isOf(nodes *snapshot[T], marks uint64) bool {
	return c != nil && c.snapshot == nodes && c.marks == marks && (c.until.IsZero() || time.Now().Before(c.until))
}

// sort sorts out who is a candidate.
func (p *ServiceProvider[T]) sort(nodes *snapshot[T], marks uint64, before *choice[T]) *choice[T] {
	now := &choice[T]{snapshot: nodes, marks: marks, all: make(map[identity]*Candidate[T], len(nodes.entries))}
	at := time.Now()
	for i, e := range nodes.entries {
		if e.Err != nil {
			now.out.noInstance++
			continue
		}
		id := identity{e.Path, nodes.nodes[i].Stat.Czxid}
		c := &Candidate[T]{Instance: e.Instance, identity: id, node: nodes.nodes[i], load: new(load)}
		if before != nil {
			switch known := before.all[id]; {
			case known == nil:
			case known.node == c.node:
				c = known
			default: // its data has changed
				c.load = known.load
			}
		}
		now.all[id] = c
		until, isDown := p.down.isDown(id, at)
		if isDown && (now.until.IsZero() || until.Before(now.until)) {
			now.until = until
		}
		switch {
		case e.Instance.Disabled:
			now.out.disabled++
		case isDown:
			now.out.down++
		case !p.passes(e.Instance):
			now.out.filtered++
		default:
			now.candidates = append(now.candidates, c)
		}
	}
	return now
}

// passes reports whether all filters let an instance pass.
func (p *ServiceProvider[T]) passes(instance ServiceInstance[T]) bool {
	return !slices.ContainsFunc(p.settings.filters, func(filter func(ServiceInstance[T]) bool) bool {
		return !filter(instance)
	})
}
