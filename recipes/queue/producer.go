package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// producer creates the nodes of items in the order in which they are put, all in one flight. What is put while requests
// are under way goes in one with the next. When the connection is lost it begins anew with the first that was not
// answered: with resend also those that may have been created, so that nothing is lost, else only those that were not
// sent, so that nothing is there twice.
type producer struct {
	client Client
	path   string
	resend bool
	ensure func(context.Context) error
	life   context.Context // ends when close has waited long enough
	end    context.CancelFunc

	slots chan struct{} // of the puts that may be under way
	wake  chan struct{}
	done  chan struct{}

	mu        sync.Mutex
	queue     []*putting // not submitted yet
	accepted  int
	completed int
	progress  chan struct{} // closed when completed grows
	failures  int           // since the last flush
	failed    error         // the first of them
	closed    bool
}

// putting is a node on its way.
type putting struct {
	prefix string
	data   []byte
	done   func(path string, err error)
	cause  context.Context //nolint:containedctx // of its span, nil if nobody traces
	maybe  bool            // it may be there: an earlier create of it was lost
}

func newProducer(client Client, path string, window int, resend bool, ensure func(context.Context) error) *producer {
	return &producer{
		client: client, path: path, resend: resend, ensure: ensure,
		slots: make(chan struct{}, window), wake: make(chan struct{}, 1), done: make(chan struct{}),
		progress: make(chan struct{}),
	}
}

func (p *producer) start(life context.Context) {
	p.life, p.end = context.WithCancel(life)
	go p.run()
}

// close waits for what is under way, as flush does, and gives up the rest.
func (p *producer) close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.nudge()
	_ = p.await(ctx)
	p.end()
	<-p.done
	return p.takeFailures()
}

func (p *producer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// put accepts x, when there is a slot for it.
func (p *producer) put(ctx context.Context, x *putting) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return ErrClosed
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.slots
		return ErrClosed
	}
	p.queue = append(p.queue, x)
	p.accepted++
	p.mu.Unlock()
	p.nudge()
	return nil
}

// run submits what is put and takes the answers, until the producer is closed and nothing is left, or its life is over.
func (p *producer) run() {
	defer close(p.done)
	var sent []*shipment // in their order
	ready := false       // the queue's node is there
	flight := builders.InOneFlight(p.life)
	for {
		var head <-chan struct{}
		if len(sent) > 0 {
			head = sent[0].answered()
		}
		select {
		case <-p.wake:
		case <-head:
			left, lost := p.settle(sent[0])
			sent = sent[1:]
			if lost {
				for _, s := range sent {
					more, _ := p.settle(s)
					left = append(left, more...)
				}
				sent = nil
				flight = builders.InOneFlight(p.life)
				p.again(left)
			}
		}
		for len(sent) < maxShipments {
			s, over := p.load()
			if over && len(sent) == 0 {
				return
			}
			if s == nil {
				break
			}
			if !ready {
				ready = p.ensure(p.life) == nil // else the creates tell what is wrong
			}
			s.submit(flight, p.client, p.path)
			sent = append(sent, s)
		}
	}
}

// load returns what is to be submitted next, nil if there is nothing; over is set when no more will come.
func (p *producer) load() (s *shipment, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := fitting(p.queue)
	if n == 0 {
		return nil, p.closed
	}
	s = &shipment{puts: p.queue[:n:n]}
	p.queue = p.queue[n:]
	return s, false
}

// settle waits for the answer to s, and completes what is decided by it. What is not is left to be submitted again;
// lost is set if the connection is.
func (p *producer) settle(s *shipment) (left []*putting, lost bool) {
	paths, err := s.wait(p.life)
	if err == nil {
		for i, x := range s.puts {
			p.complete(x, paths[i], nil)
		}
		return nil, false
	}
	given := p.life.Err() != nil
	lost = !given && lineup.IsOutage(err)
	for _, x := range s.puts {
		if (given || lost) && !errors.Is(err, framework.ErrNotSent) {
			x.maybe = true
		}
		switch {
		case given:
			p.complete(x, "", p.givenUp(x))
		case !lost:
			p.complete(x, "", err)
		case x.maybe && !p.resend:
			p.complete(x, "", errtext.Join(ErrUncertain, err))
		default:
			left = append(left, x)
		}
	}
	return left, lost
}

// givenUp is the error of a put that is not tried any longer.
func (p *producer) givenUp(x *putting) error {
	if x.maybe {
		return errtext.Join(ErrUncertain, ErrClosed)
	}
	return ErrClosed
}

// again has puts submitted once more, before all others.
func (p *producer) again(puts []*putting) {
	if len(puts) == 0 {
		return
	}
	if awaitConnection(p.life, p.client) != nil {
		for _, x := range puts {
			p.complete(x, "", p.givenUp(x))
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(puts, p.queue...)
}

func (p *producer) complete(x *putting, path string, err error) {
	if err != nil {
		err = &ItemError{Path: p.path, Err: err}
	}
	x.done(path, err)
	p.mu.Lock()
	p.completed++
	if err != nil {
		p.failures++
		if p.failed == nil {
			p.failed = err
		}
	}
	close(p.progress)
	p.progress = make(chan struct{})
	p.mu.Unlock()
	<-p.slots
}

// flush waits for what was accepted before, and tells of the failures since the last time.
func (p *producer) flush(ctx context.Context) error {
	if err := p.await(ctx); err != nil {
		return err
	}
	return p.takeFailures()
}

// await waits until what was accepted before is completed.
func (p *producer) await(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for goal := p.accepted; p.completed < goal; {
		progress := p.progress
		p.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if p.completed < goal && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (p *producer) takeFailures() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.failures, p.failed
	p.failures, p.failed = 0, nil
	if err != nil {
		return errtext.Wrap(err, "queue", "%d puts have failed, the first", n)
	}
	return nil
}
