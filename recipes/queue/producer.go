package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// producer creates the nodes of items in the order of their puts, all in one flight. Puts that arrive while requests
// are under way are sent together in the next request. After a lost connection it starts again with the first put that
// was not answered. With resend it sends again also the puts that may have been created, so that nothing is lost.
// Without, it sends only the puts that were not sent before, so that nothing is there twice.
type producer struct {
	client    Client
	path      string
	resend    bool
	ensure    func(context.Context) error
	life      context.Context // ends when close has waited long enough
	end       context.CancelFunc
	open      context.Context // ends with close: no more puts are accepted
	stop      context.CancelCauseFunc
	listeners waitqueue.Serial

	slots chan struct{} // of the puts that may be under way
	wake  chan struct{}
	done  chan struct{}

	// Fields of the goroutine that submits.
	sent      []*batch // under way, in their order
	limit     batchLimit
	ensured   bool  // the path was created, as far as permitted
	ensureErr error // the reason if not, nil after a put that succeeded
	missing   int   // how many times in a row there was no path
	outages   int   // how many times in a row the connection was lost
	answered  bool  // in this flight: requests are sent at once

	mu        sync.Mutex
	flight    context.Context
	dead      context.Context // a flight whose connection another goroutine has found lost
	queue     []*PendingPut   // not submitted
	unsent    int             // accepted puts that were not submitted in this flight
	accepted  int
	pending   map[*PendingPut]struct{} // accepted and not completed
	waiting   int
	submitted chan struct{} // closed when puts are submitted; nil without a waiter
	notified  bool          // listeners were called
	failures  *failures     // since the last flush
}

func newProducer(client Client, path string, window int, resend bool, ensure func(context.Context) error) *producer {
	p := &producer{
		client: client, path: path, resend: resend, ensure: ensure, limit: newBatchLimit(),
		slots: make(chan struct{}, window), wake: make(chan struct{}, 1), done: make(chan struct{}),
		pending: make(map[*PendingPut]struct{}), submitted: make(chan struct{}), failures: new(failures),
	}
	p.open, p.stop = context.WithCancelCause(context.Background()) //nolint:forbidigo // it ends with close
	return p
}

func (p *producer) start(life context.Context) {
	p.life, p.end = context.WithCancel(life)
	p.flight = builders.Pipelined(p.life)
	go p.run()
}

// close waits for the puts under way, as flush does, and gives up the rest. ctx bounds the wait.
func (p *producer) close(ctx context.Context) error {
	p.mu.Lock()
	p.stop(ErrClosed)
	puts, since := slices.Collect(maps.Keys(p.pending)), p.failures
	p.mu.Unlock()
	nudge(p.wake)
	_ = awaitPuts(ctx, puts)
	p.end()
	<-p.done
	_ = p.awaitListeners(ctx)
	return p.takeFailures(since)
}

// put accepts x when there is a slot for it.
func (p *producer) put(ctx context.Context, x *PendingPut) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.open.Done():
		return ErrClosed
	}
	p.mu.Lock()
	if p.open.Err() != nil {
		p.mu.Unlock()
		<-p.slots
		return ErrClosed
	}
	p.accepted++
	p.pending[x] = struct{}{}
	p.queue = append(p.queue, x)
	p.unsent++
	p.mu.Unlock()
	nudge(p.wake)
	return nil
}

// putBack puts data that was in the queue before into a new node, also after close. ctx bounds the wait for a slot, and
// all of it after close. Only the pending put reports a failure; flushes do not.
func (p *producer) putBack(ctx context.Context, prefix string, data []byte) *PendingPut {
	x := newPendingPut(prefix, data)
	x.back = true
	switch err := p.put(ctx, x); {
	case errors.Is(err, ErrClosed):
		p.putBackAlone(ctx, x)
	case err != nil:
		x.end("", p.failure(x, err))
	}
	return x
}

// putBackAlone creates the node of x, and tries again as long as the create was not sent. It does not wait.
func (p *producer) putBackAlone(ctx context.Context, x *PendingPut) {
	create := p.client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
	submit := func() builders.Future[string] {
		return create.Submit(builders.Pipelined(ctx), zkpath.Join(p.path, x.prefix), x.data)
	}
	created := submit() // in the order of the calls
	go func() {
		path, err := created.Wait(ctx)
		for errors.Is(err, framework.ErrNotSent) && waitqueue.AwaitConnection(ctx, p.client) == nil {
			path, err = submit().Wait(ctx)
		}
		x.uncertain = mayBeApplied(err)
		x.end(path, p.failure(x, err))
	}()
}

// run submits puts and takes the answers, until the producer is closed and nothing is left, or its life has ended.
func (p *producer) run() {
	defer close(p.done)
	for p.life.Err() == nil {
		if p.submit() {
			return
		}
		var first <-chan struct{}
		if len(p.sent) > 0 {
			first = p.sent[0].answered
		}
		select {
		case <-p.wake:
		case <-first:
			p.settleFirst()
		case <-p.life.Done():
		}
	}
	p.giveUp()
}

// submit submits as many batches as may be under way. Before the first answer in a flight that is a single batch: it
// may have to wait for a connection, and be refused only then, with others behind it. It reports whether no more will
// come.
func (p *producer) submit() (over bool) {
	p.leaveDeadFlight()
	for p.life.Err() == nil && (len(p.sent) == 0 || p.answered && len(p.sent) < maxBatches) {
		b, closed := p.load()
		if b == nil {
			return closed && len(p.sent) == 0
		}
		if !p.prepare(b) {
			p.unload(b.puts)
			continue
		}
		b.submit(p.flight, p.client, p.path)
		if b.isRefused(p.life) {
			p.limit.shrink(b.bytes)
			p.unload(b.puts)
			continue
		}
		p.sent = append(p.sent, b)
		p.mu.Lock()
		p.unsent -= len(b.puts)
		if p.waiting > 0 {
			close(p.submitted)
			p.submitted = make(chan struct{})
		}
		p.mu.Unlock()
	}
	return false
}

// load takes the next batch out of the queue, nil if there is none.
func (p *producer) load() (b *batch, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, p.open.Err() != nil
	}
	b = nextBatch(p.queue, p.path, p.limit.bytes)
	p.queue = p.queue[len(b.puts):]
	return b, false
}

// unload returns puts to the front of the queue, to be submitted again.
func (p *producer) unload(puts []*PendingPut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(puts[:len(puts):len(puts)], p.queue...)
}

// prepare creates what b needs before it is sent. It returns false if the connection was lost meanwhile.
func (p *producer) prepare(b *batch) bool {
	if !p.ensured {
		p.ensureErr = p.ensure(p.life) // the creates fail if they need what could not be created
		p.ensured = !waitqueue.IsOutage(p.ensureErr)
	}
	if b.puts[0].losses > 0 {
		// The answer to a small request on the same connection shows that the server is reachable.
		if _, err := p.client.CheckExists().ForPath(p.flight, p.path); waitqueue.IsOutage(err) {
			p.reconnect()
			return false
		}
	}
	return p.life.Err() == nil
}

// settleFirst takes the answer to the first batch. If some of its puts must be submitted again, it first waits for the
// answers to all other batches, so that no put is overtaken.
func (p *producer) settleFirst() {
	left, err := p.settle(p.sent[0])
	if err == nil {
		p.sent = p.sent[1:]
		return
	}
	sent := p.sent
	p.sent = nil
	for _, b := range sent[1:] {
		more, cause := p.settle(b)
		left = append(left, more...)
		if waitqueue.IsOutage(cause) {
			err = cause
		}
	}
	left = p.adjustLimits(sent, left, err)
	p.mu.Lock()
	p.unsent += len(left)
	p.mu.Unlock()
	p.unload(left)
	switch {
	case waitqueue.IsOutage(err):
		p.reconnect()
	case errors.Is(err, zk.ErrNoNode):
		p.ensured = false
		if p.missing++; p.missing > 1 {
			_ = waitqueue.Pause(p.life, doubled(waitqueue.OutagePause, maxOutagePause, p.missing))
		}
	}
}

// settle waits for the answer to b and completes the puts with a final outcome. It returns the others, which must be
// submitted again because of err.
func (p *producer) settle(b *batch) (left []*PendingPut, err error) {
	paths, err := b.wait(p.life)
	if err == nil {
		p.limit.grow()
		p.ensureErr, p.missing, p.outages, p.answered = nil, 0, 0, true
		for i, x := range b.puts {
			p.complete(x, paths[i], nil)
		}
		return nil, nil
	}
	closed, lost := p.life.Err() != nil, waitqueue.IsOutage(err)
	if (closed || lost) && !errors.Is(err, framework.ErrNotSent) {
		for _, x := range b.puts {
			x.uncertain = true
		}
	}
	switch {
	case closed:
		p.fail(b.puts, ErrClosed)
	case lost && p.resend, lost && !b.puts[0].uncertain:
		return b.puts, err
	case lost:
		p.fail(b.puts, err)
		return nil, err
	case errors.Is(err, zk.ErrNoNode) && (p.ensureErr == nil || !p.ensured): // nothing was created
		return b.puts, err
	case errors.Is(err, framework.ErrRequestTooLarge) && !b.isSingle():
		return b.puts, err
	case errors.Is(err, zk.ErrNoNode):
		p.ensured = false // the next put tries again
		p.fail(b.puts, p.ensureErr)
	default:
		p.answered = true
		p.fail(b.puts, err)
	}
	return nil, nil
}

// maxLosses is how many connections in a row may be lost with a single put under way that is larger than suspectSize.
// After that the put counts as the cause: a server closes the connection for a request that is too large for it.
const (
	maxLosses   = 8
	suspectSize = 4 << 10
)

// adjustLimits adapts the amount that is sent at a time after a failure of batches. It returns the puts that must be
// submitted again.
func (p *producer) adjustLimits(sent []*batch, left []*PendingPut, err error) []*PendingPut {
	if errors.Is(err, framework.ErrNotSent) || errors.Is(err, zk.ErrNoNode) {
		return left
	}
	largest := 0
	for _, b := range sent {
		if !b.isSingle() {
			largest = max(largest, b.bytes)
		}
	}
	if largest > 0 {
		p.limit.shrink(largest)
	}
	if len(sent) > 1 || len(left) != 1 || len(left[0].data) <= suspectSize {
		return left
	}
	x := left[0]
	if x.losses++; x.losses < maxLosses {
		return left
	}
	p.fail(left, errLostEachTime(len(x.data)))
	return nil
}

func errLostEachTime(bytes int) error {
	return fmt.Errorf("%w each of the %d times that its %d bytes were sent: compare jute.maxbuffer of the servers",
		framework.ErrConnectionLoss, maxLosses, bytes)
}

// reconnect waits for a connection and begins another flight.
func (p *producer) reconnect() {
	if waitqueue.Pause(p.life, doubled(waitqueue.OutagePause, maxOutagePause, p.outages)) == nil {
		_ = p.client.BlockUntilConnected(p.life)
	}
	p.outages++
	p.newFlight()
}

func (p *producer) newFlight() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flight, p.answered = builders.Pipelined(p.life), false
}

// leaveDeadFlight starts another flight if the connection of this one was found lost while nothing was under way.
func (p *producer) leaveDeadFlight() {
	p.mu.Lock()
	dead := p.dead == p.flight
	p.mu.Unlock()
	if dead && len(p.sent) == 0 {
		p.newFlight()
	}
}

// reportLoss records that another goroutine has found the connection of a flight lost.
func (p *producer) reportLoss(flight context.Context) {
	p.mu.Lock()
	p.dead = flight
	p.mu.Unlock()
	nudge(p.wake)
}

// giveUp completes all puts when the life ends.
func (p *producer) giveUp() {
	p.stop(ErrClosed)
	for _, b := range p.sent {
		_, _ = p.settle(b)
	}
	p.sent = nil
	p.mu.Lock()
	left := p.queue
	p.queue = nil
	p.mu.Unlock()
	p.fail(left, ErrClosed)
}

// maxOutagePause bounds the pauses between tries.
const maxOutagePause = time.Second
