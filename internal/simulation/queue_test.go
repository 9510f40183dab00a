package simulation_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/recipes/queue"
)

// queueKind is one of the kinds of queues.
type queueKind int

const (
	plainQueue queueKind = iota
	priorityQueue
	delayQueue
	idQueue
)

func (k queueKind) String() string { return [...]string{"plain", "priority", "delay", "id"}[k] }

// workQueue is a queue of a world, with the way in which the processes use it.
type workQueue struct {
	world    *world
	resource *resource
	ledger   *ledger
	path     string
	locks    string // path of the locks, "" for none
	kind     queueKind

	mode        queue.ErrorMode
	maxItems    int // 0 for any number
	prefetch    int
	concurrency int
	finalFlush  time.Duration
	putters     int  // goroutines that put into one queue at a time
	pullers     int  // loops over the items of one queue at a time
	keeps       bool // in their last turn, consumers keep the queue that is open
}

// concurrency is the number of items that a consumer gets at a time. With more, several of its goroutines would wait
// for a mutex whose holder waits for an item: then no virtual time passes.
const concurrency = 1

// queueRecipe is a queue. Some actors put items, others consume or pull them. The seed decides about the rest.
func queueRecipe(w *world, name string, kind queueKind, locked bool) recipe {
	random := w.random(name)
	u := &workQueue{
		world: w, resource: newResource("/" + name), path: "/" + name, kind: kind,
		prefetch:    pick(random, []int{0, 3, 20}),
		concurrency: concurrency,
		maxItems:    pick(random, []int{0, 0, 0, 15}),
		finalFlush:  pick(random, []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}),
		putters:     pick(random, []int{1, 1, 2}),
		pullers:     pick(random, []int{1, 1, 2}),
		keeps:       random.IntN(2) == 0,
		mode:        queue.DeleteOnError,
	}
	if locked {
		u.locks = u.path + "-locks"
		u.resource.lines = append(u.resource.lines, line{u.locks, true, false})
		if random.IntN(4) > 0 {
			u.mode = queue.RequeueOnError
		}
	}
	u.ledger = newLedger(u)
	roles := []role{{"producer of " + name, u.produce}, {"consumer of " + name, u.consume}, {"puller of " + name, u.pull}}
	switch random.IntN(4) { // one actor's permanent mistake, which the others would correct
	case 0:
		roles = roles[:2]
	case 1:
		roles = []role{roles[0], roles[2]}
	}
	w.queues = append(w.queues, u)
	return recipe{name: name, resources: []*resource{u.resource}, actors: roles}
}

// anyQueue is the part that all kinds of queues share.
type anyQueue interface {
	Start() error
	Close() error
	FlushPuts(ctx context.Context) error
	Items(ctx context.Context) iter.Seq2[queue.Item[string], error]
	AddPutListener(fn callbacks.Listener[queue.PutEvent[string]]) (remove func())
}

// openQueue is a queue of an actor, from Start to Close.
type openQueue struct {
	*workQueue
	actor    *actor
	queue    anyQueue
	consumes bool // it has a consumer
	// put puts the items of one put.
	put func(ctx context.Context, p *put, values ...string) error
	// remove removes the items with an id. It is nil if the queue has no ids.
	remove func(ctx context.Context, id string) (int, error)

	// The ledger guards the fields below.
	running  int       // calls of the consumer
	returned time.Time // when the last of them returned
	closing  bool      // Close was called
	closed   bool      // Close has returned
	puts     []*put
}

// open builds and starts a queue. Without a consumer it is for puts or pulls.
func (u *workQueue) open(a *actor, consumes bool) *openQueue {
	o := &openQueue{workQueue: u, actor: a, consumes: consumes}
	var consumer queue.Consumer[string]
	if consumes {
		consumer = o.consumeItem
	}
	b := queue.NewBuilder(a.process.client, consumer, codec.Text{}, u.path).
		Prefetch(u.prefetch).Concurrency(u.concurrency).FinalFlushTime(u.finalFlush).OnError(o.reported)
	if u.locks != "" {
		b = b.LockPath(u.locks).ErrorMode(u.mode)
	}
	if u.maxItems > 0 {
		b = b.MaxItems(u.maxItems)
	}
	if err := o.build(b); err != nil {
		panic(err) // the options are wrong
	}
	o.queue.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) {
		u.ledger.putEnded(ev.Items[0], ev.Path, ev.Err)
	})
	if err := o.queue.Start(); err != nil {
		a.notStarted(err)
	}
	return o
}

func (o *openQueue) build(b queue.Builder[string]) error {
	switch o.kind {
	case plainQueue:
		q, err := b.BuildQueue()
		o.queue = q
		o.put = func(ctx context.Context, _ *put, values ...string) error {
			if len(values) == 1 {
				return q.Put(ctx, values[0])
			}
			return q.PutMulti(ctx, values...)
		}
		return err
	case priorityQueue:
		q, err := b.BuildPriorityQueue(3)
		o.queue = q
		o.put = func(ctx context.Context, p *put, values ...string) error {
			return q.PutMulti(ctx, p.priority, values...)
		}
		return err
	case delayQueue:
		q, err := b.BuildDelayQueue()
		o.queue = q
		o.put = func(ctx context.Context, p *put, values ...string) error { return q.PutMulti(ctx, p.due, values...) }
		return err
	default:
		q, err := b.BuildIDQueue()
		o.queue, o.remove = q, q.Remove
		o.put = func(ctx context.Context, p *put, values ...string) error { return q.PutMulti(ctx, p.id, values...) }
		return err
	}
}

// close closes the queue, which must return in time.
func (o *openQueue) close() error {
	o.ledger.closing(o)
	o.actor.closing.Store(true)
	defer o.actor.closing.Store(false)
	began := time.Now()
	err := o.queue.Close()
	o.ledger.closed(o, began, err)
	return err
}

// reported is the OnError of the queue.
func (o *openQueue) reported(_ context.Context, err error) { o.ledger.reported(o, err) }

// isOver reports whether ctx has ended, or the work is done: all putters have had their last turn, and the queue is
// empty.
func (u *workQueue) isOver(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	if !u.world.isCalm() || u.world.runs("producer of "+u.resource.name()) {
		return false
	}
	leader, err := u.world.cluster.Leader()
	if err != nil {
		return false
	}
	for _, l := range u.resource.lines {
		if len(leader.Children(l.path)) > 0 {
			return false
		}
	}
	return true
}

// awaitEmpty waits until the work is done.
func (u *workQueue) awaitEmpty(ctx context.Context) {
	for !u.isOver(ctx) && wait(ctx, tick) {
		continue
	}
}

// together runs fn several times at once, each with its own random sequence.
func together(a *actor, n int, fn func(i int, random *rand.Rand)) {
	var group sync.WaitGroup
	for i := range n {
		random := rand.New(rand.NewPCG(a.random.Uint64(), a.random.Uint64()))
		group.Go(func() { fn(i, random) })
	}
	group.Wait()
}

func within(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most))) + 1
}
