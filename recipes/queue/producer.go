package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// producer creates the nodes of items in the order in which they are put, many at a time in one flight. When the
// connection is lost it begins anew with the first that was not answered: with resend also those that may have been
// created, so that nothing is lost, else only those that were not sent, so that nothing is there twice.
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
	sent   builders.Future[string]
	maybe  bool // it may be there: an earlier create of it was lost
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
	var sent []*putting // in their order
	ready := false      // the queue's node is there
	flight := builders.InOneFlight(p.life)
	for {
		var head <-chan struct{}
		if len(sent) > 0 {
			head = sent[0].sent.Done()
		}
		select {
		case <-p.wake:
			fresh, over := p.fresh()
			if over && len(fresh)+len(sent) == 0 {
				return
			}
			if !ready && len(fresh) > 0 {
				ready = p.ensure(p.life) == nil // else the creates tell what is wrong
			}
			for _, x := range fresh {
				p.submit(flight, x)
			}
			sent = append(sent, fresh...)
		case <-head:
			x := sent[0]
			path, err := p.outcome(x)
			if lineup.IsOutage(err) {
				flight = builders.InOneFlight(p.life)
				sent = p.again(flight, sent)
				continue
			}
			sent[0] = nil
			sent = sent[1:]
			p.complete(x, path, err)
		}
	}
}

// fresh returns what is to be submitted; over is set when no more will come.
func (p *producer) fresh() (fresh []*putting, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh, p.queue = p.queue, nil
	return fresh, p.closed
}

func (p *producer) submit(flight context.Context, x *putting) {
	x.sent = sequential(p.client).Submit(flight, zkpath.Join(p.path, x.prefix), x.data)
}

// outcome waits for the answer to x.
func (p *producer) outcome(x *putting) (string, error) {
	path, err := x.sent.Wait(p.life)
	if p.life.Err() != nil && err != nil {
		x.maybe = x.maybe || !errors.Is(err, framework.ErrNotSent)
		err = p.givenUp(x)
	}
	return path, err
}

// givenUp is the error of a put that is not tried any longer.
func (p *producer) givenUp(x *putting) error {
	if x.maybe {
		return fmt.Errorf("%w: %w", ErrUncertain, ErrClosed)
	}
	return ErrClosed
}

// again takes all answers of a flight that was lost, and submits in another what has to be.
func (p *producer) again(flight context.Context, sent []*putting) (left []*putting) {
	for _, x := range sent {
		path, err := p.outcome(x)
		switch {
		case !lineup.IsOutage(err):
			p.complete(x, path, err)
			continue
		case !errors.Is(err, framework.ErrNotSent):
			x.maybe = true
		}
		if x.maybe && !p.resend {
			p.complete(x, "", fmt.Errorf("%w: %w", ErrUncertain, err))
			continue
		}
		left = append(left, x)
	}
	if len(left) > 0 && awaitConnection(p.life, p.client) != nil {
		for _, x := range left {
			p.complete(x, "", p.givenUp(x))
		}
		return nil
	}
	for _, x := range left {
		p.submit(flight, x)
	}
	return left
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
	over := p.closed
	p.mu.Unlock()
	<-p.slots
	if over { // the last one ends the producer
		p.nudge()
	}
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
		return fmt.Errorf("queue: %d puts have failed, the first: %w", n, err)
	}
	return nil
}
