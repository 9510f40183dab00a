package produce

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// Producer creates the nodes of items in the order of their puts, all in one flight. Puts that arrive while requests
// are under way are sent together in the next request. After a lost connection it starts again with the first put that
// was not answered. With resend it sends again also the puts that may have been created, so that nothing is lost.
// Without, it sends only the puts that were not sent before, so that nothing is there twice.
type Producer struct {
	Config
	life      context.Context // ends when close has waited long enough
	end       context.CancelFunc
	open      context.Context // ends with close: no more puts are accepted
	stop      context.CancelCauseFunc
	Listeners waitqueue.Serial // calls the put listeners, in the order of the outcomes

	slots chan struct{} // of the puts that may be under way
	wake  chan struct{}
	done  chan struct{}

	// Fields of the goroutine that submits.
	sent      []*batch // under way, in their order
	alone     int      // puts to send alone: those of batches that were refused or lost
	ensured   bool     // the path was created, as far as permitted
	ensureErr error    // the reason if not, nil after a put that succeeded
	missing   int      // how many times in a row there was no path
	outages   int      // how many times in a row the connection was lost
	answered  bool     // in this flight: requests are sent at once

	mu        sync.Mutex
	flight    context.Context
	dead      context.Context // a flight whose connection another goroutine has found lost
	queue     []*Put          // not submitted
	unsent    int             // accepted puts that were not submitted in this flight
	accepted  int
	pending   map[*Put]struct{} // accepted and not completed
	waiting   int
	submitted chan struct{} // closed when puts are submitted; nil without a waiter
	notified  bool          // listeners were called
	failures  *failures     // since the last flush
}

// Config holds the settings of a producer.
type Config struct {
	Client    *framework.Client
	Path      string
	Window    int  // how many puts may be under way
	Resend    bool // send also the puts that may have been created before a loss
	Ensure    func(context.Context) error
	ItemError func(data []byte, err error) error // of a put
}

// New returns a producer. Start starts it.
func New(c Config) *Producer {
	p := &Producer{
		Config: c,
		slots:  make(chan struct{}, c.Window), wake: make(chan struct{}, 1), done: make(chan struct{}),
		pending: make(map[*Put]struct{}), submitted: make(chan struct{}), failures: new(failures),
	}
	p.open, p.stop = context.WithCancelCause(context.Background()) //nolint:forbidigo // it ends with close
	return p
}

// Start starts the goroutine that sends puts, until Close or the end of life.
func (p *Producer) Start(life context.Context) {
	p.life, p.end = context.WithCancel(life)
	p.flight = builders.Pipelined(p.life)
	go p.run()
}

// Close waits for the puts under way, as flush does, and gives up the rest. ctx bounds the wait. listener is the number
// of a listener call that may be the caller, 0 if there is none.
func (p *Producer) Close(ctx context.Context, listener int) error {
	p.mu.Lock()
	p.stop(node.ErrClosed)
	puts, since := slices.Collect(maps.Keys(p.pending)), p.failures
	p.mu.Unlock()
	reply.Nudge(p.wake)
	_ = awaitPuts(ctx, puts)
	p.end()
	<-p.done
	p.Listeners.Wait(ctx, listener)
	return p.takeFailures(since)
}

// Put accepts x when there is a slot for it.
func (p *Producer) Put(ctx context.Context, x *Put) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.open.Done():
		return node.ErrClosed
	}
	p.mu.Lock()
	if p.open.Err() != nil {
		p.mu.Unlock()
		<-p.slots
		return node.ErrClosed
	}
	p.accepted++
	p.pending[x] = struct{}{}
	p.queue = append(p.queue, x)
	p.unsent++
	p.mu.Unlock()
	reply.Nudge(p.wake)
	return nil
}

// PutBack puts data that was in the queue before into a new node, also after close. ctx bounds the wait for a slot, and
// all of it after close. Only the pending put reports a failure; flushes do not.
func (p *Producer) PutBack(ctx context.Context, prefix string, data []byte) *Put {
	x := NewPut(prefix, data)
	x.back = true
	switch err := p.Put(ctx, &x); {
	case errors.Is(err, node.ErrClosed):
		p.putBackAlone(ctx, &x)
	case err != nil:
		x.end("", p.failure(&x, err))
	}
	return &x
}

// putBackAlone creates the node of x, and tries again as long as the create was not begun. It does not wait.
func (p *Producer) putBackAlone(ctx context.Context, x *Put) {
	create := p.Client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
	submit := func() builders.Future[string] {
		return create.Submit(builders.Pipelined(ctx), zkpath.Join(p.Path, x.prefix), x.data)
	}
	created := submit() // in the order of the calls
	go func() {
		path, err := created.Wait(ctx)
		for errors.Is(err, framework.ErrNotSent) || reply.IsThrottled(err) {
			if waitqueue.AwaitConnection(ctx, p.Client) != nil {
				break
			}
			path, err = submit().Wait(ctx)
		}
		x.uncertain = reply.MayBeApplied(err)
		x.end(path, p.failure(x, err))
	}()
}

// run submits puts and takes the answers, until the producer is closed and nothing is left, or its life has ended.
func (p *Producer) run() {
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
func (p *Producer) submit() (over bool) {
	p.leaveDeadFlight()
	for p.life.Err() == nil && (len(p.sent) == 0 || p.answered && len(p.sent) < maxBatches) {
		b, closed := p.load()
		if b == nil {
			return closed && len(p.sent) == 0
		}
		if !p.prepare() {
			p.unload(b.puts)
			continue
		}
		b.submit(p.flight, p.Client, p.Path)
		if b.isRefused(p.life) {
			p.alone = len(b.puts)
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
func (p *Producer) load() (b *batch, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, p.open.Err() != nil
	}
	most := maxBatchPuts
	if p.alone > 0 {
		p.alone--
		most = 1
	}
	b = nextBatch(p.queue, p.Path, most)
	p.queue = p.queue[len(b.puts):]
	return b, false
}

// unload returns puts to the front of the queue, to be submitted again.
func (p *Producer) unload(puts []*Put) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(puts[:len(puts):len(puts)], p.queue...)
}

// prepare creates what a batch needs before it is sent. It returns false when the life has ended.
func (p *Producer) prepare() bool {
	if !p.ensured {
		p.ensureErr = p.Ensure(p.life) // the creates fail if they need what could not be created
		p.ensured = !waitqueue.IsPassing(p.ensureErr)
	}
	return p.life.Err() == nil
}

// reconnect waits, after an error that passes, for a connection and begins another flight.
func (p *Producer) reconnect() {
	if waitqueue.Pause(p.life, reply.Doubled(waitqueue.OutagePause, maxOutagePause, p.outages)) == nil {
		_ = hook.AwaitConnection(p.life, p.Client)
	}
	p.outages++
	p.newFlight()
}

func (p *Producer) newFlight() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flight, p.answered = builders.Pipelined(p.life), false
}

// leaveDeadFlight starts another flight if the connection of this one was found lost while nothing was under way.
func (p *Producer) leaveDeadFlight() {
	p.mu.Lock()
	dead := p.dead == p.flight
	p.mu.Unlock()
	if dead && len(p.sent) == 0 {
		p.newFlight()
	}
}

// reportLoss records that another goroutine has found the connection of a flight lost.
func (p *Producer) reportLoss(flight context.Context) {
	p.mu.Lock()
	p.dead = flight
	p.mu.Unlock()
	reply.Nudge(p.wake)
}

// maxOutagePause bounds the pauses between tries.
const maxOutagePause = time.Second
