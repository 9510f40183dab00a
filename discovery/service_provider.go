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
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
)

// ServiceProvider chooses one instance of a service for each call. It leaves out the instances that are disabled, that
// a filter refuses, and that are down because callers have noted errors of them. All methods are safe for concurrent
// use. In Java: ServiceProvider.
type ServiceProvider[T any] struct {
	cache    *ServiceCache[T]
	settings providerSettings[T]
	isExact  bool          // the strategy gets no candidate that is down
	marks    atomic.Uint64 // counts the instances that have gone down

	current atomic.Pointer[choice[T]]
	mu      sync.Mutex // of making a choice. No code of the program runs with it held
}

// choice has the candidates between two changes. It is immutable.
type choice[T any] struct {
	snapshot   *snapshot[T]
	marks      uint64                                  // those that candidates takes into account
	candidates []*Candidate[T]                         // without those that are down by then
	down       []*Candidate[T]                         // the others, in the order in which they are up again
	byID       func() map[registeredAs][]*Candidate[T] // those that are no candidates, too
	out        leftOut
}

// registeredAs names an instance that was registered once.
type registeredAs struct {
	id     string
	millis int64
}

// leftOut counts the nodes of a service that are no candidates, by the reason.
type leftOut struct{ noInstance, disabled, filtered int }

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
// an instance, not for each choice, on a goroutine of the provider: one that blocks holds up the changes of this
// provider, which chooses among those that it knows. An instance for which it panics is not chosen, and the client
// reports the panic as an unhandled error. In Java: additionalFilter.
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
	p.cache.judge, p.cache.isDown = p.judge, func(i *item[T]) bool { return i.candidate.isDown() }
	s, ok := p.settings.strategy.(skipping)
	p.isExact = !ok || !s.skipsDown()
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

// Instance returns an instance, or [ErrNoInstance], whose text says why none of the nodes is chosen, if there are any.
// A panic of the strategy is an error. It does no I/O and does not wait. In Java: getInstance, which returns null.
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
	all := []ServiceInstance[T]{}
	for _, i := range p.cache.snapshot().items {
		if i.passes && !i.candidate.isDown() {
			all = append(all, i.Instance)
		}
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
		k.p.noteError(k.chosen)
	}
}

// Pick returns an instance and counts it as in flight until its Done is called. It waits until there is one. ctx bounds
// the wait: the error is that of ctx, with the reason for a missing connection, joined with [ErrNoInstance]. Not in
// Java.
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
	if down := p.choice().down; len(down) > 0 {
		timer := time.NewTimer(time.Until(*down[0].load.upAt.Load()))
		defer timer.Stop()
		up = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-up:
		return nil
	case <-ctx.Done():
		return errtext.Join(hook.EndOf(ctx, p.cache.d.client), p.none())
	}
}

// NoteError notes that an instance has failed a caller. After some errors it is down for a time, and not chosen: see
// [WithDownInstancePolicy]. An instance that has registered anew, with another time, is up. In Java: noteError.
func (p *ServiceProvider[T]) NoteError(instance ServiceInstance[T]) {
	for _, c := range p.choice().byID()[registeredAs{instance.ID, millisOf(instance.RegistrationTime)}] {
		p.noteError(c)
	}
}

func (p *ServiceProvider[T]) noteError(c *Candidate[T]) {
	if c.load.note(time.Now(), p.settings.timeout, p.settings.threshold) {
		p.marks.Add(1)
	}
}

// maxAsks is how often a strategy may choose a candidate that is down, until those are taken out of the list.
const maxAsks = 8

// choose returns a candidate. Among many candidates, of which few are down, it costs the same for any number of them.
func (p *ServiceProvider[T]) choose() (*Candidate[T], error) {
	if err := p.cache.isRunning(); err != nil {
		return nil, err
	}
	choice := p.choice()
	for range maxAsks {
		c, err := p.ask(choice)
		switch {
		case err != nil:
			return nil, wrap(err, "choose", p.cache.path)
		case c == nil && choice.marks == p.marks.Load():
			return nil, p.none()
		case c != nil && !c.isDown():
			return c, nil
		case c == nil:
			choice = p.withoutDown()
		}
	}
	c, err := p.ask(p.withoutDown())
	if c == nil && err == nil {
		return nil, p.none()
	}
	return c, wrap(err, "choose", p.cache.path)
}

// ask has the strategy choose. It returns nil if it chooses none.
func (p *ServiceProvider[T]) ask(choice *choice[T]) (c *Candidate[T], err error) {
	if len(choice.candidates) == 0 {
		return nil, nil
	}
	defer usercode.Catch("the strategy", &err)
	c = p.settings.strategy.Choose(choice.candidates)
	if c != nil && c.load == nil {
		return nil, errors.New("the strategy has chosen none of its candidates")
	}
	return c, nil
}

// none returns why there is no instance.
func (p *ServiceProvider[T]) none() error {
	if err := p.cache.isRunning(); err != nil {
		return err
	}
	err := errtext.Wrap(ErrNoInstance, "discovery", "%s", p.cache.path)
	if c := p.choice(); len(c.snapshot.items) > 0 {
		err = fmt.Errorf("%w: of %d nodes %d are no instance, %d disabled, %d down, %d filtered out, %d not chosen", err,
			len(c.snapshot.items), c.out.noInstance, c.out.disabled, len(c.down), c.out.filtered, len(c.candidates))
	}
	return errtext.Join(err, p.cache.Err())
}

// choice returns the candidates as they are now. Some may be down, unless the strategy is exact. Nothing is allocated
// unless they have changed.
func (p *ServiceProvider[T]) choice() *choice[T] {
	if c := p.current.Load(); p.isCurrent(c) && !c.hasOneUp() {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current.Load()
	switch {
	case !p.isCurrent(c) || p.isExact && c.hasOneUp():
		c = p.sort(c)
	case c.hasOneUp():
		c = c.withThoseUp()
	}
	p.current.Store(c)
	return c
}

// withoutDown returns the candidates of which none is down now.
func (p *ServiceProvider[T]) withoutDown() *choice[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.sort(p.current.Load())
	p.current.Store(c)
	return c
}

func (p *ServiceProvider[T]) isCurrent(c *choice[T]) bool {
	return c != nil && c.snapshot == p.cache.snapshot() && (!p.isExact || c.marks == p.marks.Load())
}

// hasOneUp reports whether a candidate that was down is up again.
func (c *choice[T]) hasOneUp() bool { return len(c.down) > 0 && !c.down[0].isDown() }

// withThoseUp puts the candidates that are up again behind the others. A strategy that has the list of before does not
// see them there.
func (c *choice[T]) withThoseUp() *choice[T] {
	now := *c
	for now.hasOneUp() {
		now.candidates, now.down = append(now.candidates, now.down[0]), now.down[1:]
	}
	return &now
}

// sort sorts out who is a candidate.
func (p *ServiceProvider[T]) sort(before *choice[T]) *choice[T] {
	now := &choice[T]{marks: p.marks.Load(), snapshot: p.cache.snapshot()}
	for _, i := range now.snapshot.items {
		switch {
		case i.Err != nil:
			now.out.noInstance++
		case i.Instance.Disabled:
			now.out.disabled++
		case !i.passes:
			now.out.filtered++
		case i.candidate.isDown():
			now.down = append(now.down, i.candidate)
		default:
			now.candidates = append(now.candidates, i.candidate)
		}
	}
	slices.SortFunc(now.down, func(a, b *Candidate[T]) int { return a.load.upAt.Load().Compare(*b.load.upAt.Load()) })
	if before != nil && before.snapshot == now.snapshot {
		now.byID = before.byID
	} else {
		now.byID = sync.OnceValue(now.snapshot.byID)
	}
	return now
}

// byID returns the candidates of all instances.
func (s *snapshot[T]) byID() map[registeredAs][]*Candidate[T] {
	all := make(map[registeredAs][]*Candidate[T], len(s.items))
	for _, i := range s.items {
		if i.candidate != nil {
			as := registeredAs{i.Instance.ID, millisOf(i.Instance.RegistrationTime)}
			all[as] = append(all[as], i.candidate)
		}
	}
	return all
}

// judge makes a candidate of an instance, and has the filters and weights of the program look at it.
func (p *ServiceProvider[T]) judge(i *item[T]) {
	i.candidate = &Candidate[T]{
		Instance: i.Instance, identity: identity{i.Path, i.node.Stat.Czxid}, load: new(load),
	}
	if i.Instance.Disabled {
		return
	}
	p.call(i, "a filter", func() error {
		return usercode.Call("a filter", func() { i.passes = p.passes(i.Instance) })
	})
	if s, ok := p.settings.strategy.(preparing[T]); ok && i.passes {
		p.call(i, "the weight", func() error { return s.prepare(i.candidate) })
	}
}

// call calls code of the program for an item, and reports its error.
func (p *ServiceProvider[T]) call(i *item[T], what string, fn func() error) {
	err := usercode.Exited(what)
	defer func() { // also if the goroutine ends
		if err != nil {
			p.cache.d.reportError("ServiceProvider", errtext.Wrap(err, "discovery", "%s", i.Path))
		}
	}()
	err = fn()
}

// passes reports whether all filters let an instance pass.
func (p *ServiceProvider[T]) passes(instance ServiceInstance[T]) bool {
	return !slices.ContainsFunc(p.settings.filters, func(filter func(ServiceInstance[T]) bool) bool {
		return !filter(instance)
	})
}
