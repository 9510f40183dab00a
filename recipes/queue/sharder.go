package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// shardName is the name prefix of shards. A UUID follows, in Java too.
const shardName = "queue-"

// shardNames matches the names of shards. Lock paths and dead letters may stand beside them, with longer names.
var shardNames = regexp.MustCompile(`^` + shardName + `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ErrMaxQueues is the background error when the queues are full and no more may be added.
var ErrMaxQueues = errors.New("queue: no more queues may be added")

// QueueAllocator builds the queue of a path; it does not start it. It must not call Close of the sharder. In Java:
// QueueAllocator.
type QueueAllocator[Q Shard] func(path string) (Q, error) //nolint:revive // the name is Java's

// Leader reports whether this process may add queues. A LeaderLatch of package leader is one, on a path that is not
// below the path of the queues. The sharder does not close it: the caller does.
type Leader interface {
	HasLeadership() bool
}

// QueueSharder spreads items over several queues, because a queue with very many nodes becomes slow to list. It adds a
// queue when the others are full. All sharders of a path have the same queues, a while after one has added another.
// Each builds them for itself, with its consumers if it has any. All methods are safe for concurrent use. In Java:
// QueueSharder, which adds one at each check for as long as any is full.
type QueueSharder[Q Shard] struct { //nolint:revive // the name is Java's
	client   *framework.Client
	allocate QueueAllocator[Q]
	path     string
	leader   Leader
	sharderOptions

	life   context.Context // ends with Close
	end    context.CancelFunc
	ready  chan struct{} // closed when there is a queue
	done   chan struct{} // when nothing runs any more
	closed chan struct{} // when Close is done
	err    error         // of Close

	mu     sync.Mutex
	state  State
	failed error // of the last check, nil if it was an outage
	shards []*shard[Q]
}

type sharderOptions struct {
	threshold int
	interval  time.Duration
	maxQueues int
	onError   func(ctx context.Context, err error)
	err       error // of an argument
}

// SharderOption changes a default of a [QueueSharder]. In Java: QueueSharderPolicies.
type SharderOption interface{ applySharder(*sharderOptions) }

type sharderOption func(*sharderOptions)

func (o sharderOption) applySharder(s *sharderOptions) { o(s) }

// WithNewQueueThreshold sets the number of znodes at which a shard counts as full. It counts as full until it has
// drained to half that number. The default is 10,000. In Java: newQueueThreshold.
func WithNewQueueThreshold(n int) SharderOption {
	return sharderOption(func(o *sharderOptions) {
		o.threshold = n
		o.check(n >= 1, "a new queue after %d items", n)
	})
}

// WithThresholdCheck sets the interval at which a sharder measures the queues, and looks for queues that others have
// added. The default is 30 s. In Java: thresholdCheckMs.
func WithThresholdCheck(every time.Duration) SharderOption {
	return sharderOption(func(o *sharderOptions) {
		o.interval = every
		o.check(every > 0, "a check every %v", every)
		wrong := errtext.TooShort(every)
		o.check(wrong == "", "a check every %s", wrong)
	})
}

// WithMaxQueues sets the maximum number of queues; the default is 10. In Java: maxQueues.
func WithMaxQueues(n int) SharderOption {
	return sharderOption(func(o *sharderOptions) {
		o.maxQueues = n
		o.check(n >= 1, "at most %d queues", n)
	})
}

// WithOnError sets the handler of background errors: queues that cannot be listed, added, built or started, and
// [ErrMaxQueues]. The sharder tries again. The default reports to the client's unhandled-error listeners and its log.
// fn must not call Close.
func WithOnError(fn func(ctx context.Context, err error)) SharderOption {
	return sharderOption(func(o *sharderOptions) { o.onError = fn })
}

func (o *sharderOptions) check(ok bool, format string, args ...any) {
	if !ok && o.err == nil {
		o.err = fmt.Errorf("queue: "+format, args...)
	}
}

// NewQueueSharder returns a sharder of the queues below a path. It does no I/O; Start returns the error of an invalid
// argument. In Java the leader is a path.
func NewQueueSharder[Q Shard](
	client *framework.Client, allocate QueueAllocator[Q], path string, leader Leader, opts ...SharderOption,
) *QueueSharder[Q] {
	s := &QueueSharder[Q]{
		client: client, allocate: allocate, path: path, leader: leader,
		sharderOptions: sharderOptions{threshold: 10_000, interval: 30 * time.Second, maxQueues: 10},
		ready:          make(chan struct{}), done: make(chan struct{}), closed: make(chan struct{}),
	}
	for _, o := range opts {
		o.applySharder(&s.sharderOptions)
	}
	if s.onError == nil {
		s.onError = s.reportToClient
	}
	s.check(allocate != nil, "no allocator")
	s.check(leader != nil, "no leader")
	if err := zkpath.Validate(path, false); err != nil {
		s.check(false, "%w", err)
	}
	s.life, s.end = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with Close
	return s
}

// Start starts to look for queues, and adds one if there is none. It does not wait for a connection. It fails with
// [ErrStarted] the second time, with [ErrClosed] after Close, and with framework.ErrClosed when the client is closed.
// In Java: start.
func (s *QueueSharder[Q]) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sharderOptions.err != nil:
		return s.sharderOptions.err
	case s.state == Started:
		return ErrStarted
	case s.state == Closed:
		return ErrClosed
	}
	if err := waitqueue.CheckOpen(s.client); err != nil {
		return errtext.Wrap(err, "queue", "start")
	}
	s.state = Started
	go s.run()
	return nil
}

// Close closes all queues and returns their errors. Close is idempotent. In Java: close.
func (s *QueueSharder[Q]) Close() error {
	s.mu.Lock()
	before := s.state
	s.state = Closed
	s.mu.Unlock()
	if before == Closed {
		<-s.closed
		return s.err
	}
	s.end()
	if before == Started {
		<-s.done
		s.err = s.closeShards()
	}
	close(s.closed)
	return s.err
}

// closeShards closes all queues concurrently: each may wait for requests under way.
func (s *QueueSharder[Q]) closeShards() error {
	errs := make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i, sh := range s.shards {
		wg.Go(func() { errs[i] = sh.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Queue returns a random queue to put the next item in, one that is not full if possible. It waits until there is a
// queue, or the client is closed; ctx bounds that wait, and the error at its end has the reason, as
// framework.ErrNoChroot. Put one item in it, or a few, and call Queue again. In Java:
// getQueue.
func (s *QueueSharder[Q]) Queue(ctx context.Context) (q Q, err error) {
	s.mu.Lock()
	latent := s.state == Latent
	s.mu.Unlock()
	if latent {
		return q, ErrNotStarted
	}
	select {
	case <-s.ready:
	case <-s.life.Done():
	case <-s.done:
	case <-ctx.Done():
		return q, s.explain(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == Closed:
		return q, ErrClosed
	case len(s.shards) == 0:
		return q, framework.ErrClosed
	}
	return s.choose().queue, nil
}

// explain returns the error of ctx, which has ended before there was a queue, with the reason for that.
func (s *QueueSharder[Q]) explain(ctx context.Context) error {
	s.mu.Lock()
	failed := s.failed
	s.mu.Unlock()
	if failed != nil {
		return errtext.Wrap(errtext.Join(ctx.Err(), failed), "queue", "%s", s.path)
	}
	return waitqueue.Explain(ctx, s.client, ctx.Err())
}

// choose returns a random preferred shard, or any shard if none is preferred. mu is held.
func (s *QueueSharder[Q]) choose() *shard[Q] {
	preferred := make([]*shard[Q], 0, len(s.shards))
	for _, sh := range s.shards {
		if sh.preferred {
			preferred = append(preferred, sh)
		}
	}
	if len(preferred) == 0 {
		preferred = s.shards
	}
	return preferred[rand.IntN(len(preferred))]
}

// ShardQty returns the number of the sharder's queues. In Java: getShardQty.
func (s *QueueSharder[Q]) ShardQty() int { return len(s.QueuePaths()) }

// QueuePaths returns the paths of the sharder's queues. In Java: getQueuePaths.
func (s *QueueSharder[Q]) QueuePaths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := make([]string, len(s.shards))
	for i, sh := range s.shards {
		paths[i] = sh.path
	}
	slices.Sort(paths)
	return paths
}

// run checks the queues until the sharder or its client is closed.
func (s *QueueSharder[Q]) run() {
	defer close(s.done)
	for failures := 0; ; {
		wait := s.interval
		err := s.checkQueues()
		s.mu.Lock()
		if s.failed = err; waitqueue.IsPassing(err) {
			s.failed = nil
		}
		s.mu.Unlock()
		switch {
		case s.life.Err() != nil:
			return
		case waitqueue.IsPassing(err):
			if waitqueue.AwaitConnection(s.life, s.client) == nil {
				continue
			}
		case err != nil:
			s.report(err)
			failures++
		default:
			failures = 0
		}
		if len(s.shards) == 0 { // a caller may wait for the first
			wait = min(wait, reply.Doubled(waitqueue.FailurePause, s.interval, max(0, failures-1)))
		}
		if reply.IsClientClosed(err) || waitqueue.Pause(s.life, wait) != nil {
			return
		}
	}
}

// checkQueues finds the existing queues, measures them, and adds one if another is needed and this process may add it.
func (s *QueueSharder[Q]) checkQueues() error {
	there, err := s.find()
	if err != nil && there == 0 {
		return err
	}
	return errors.Join(err, s.addIfNeeded(there))
}

// addIfNeeded adds a queue if there is none, or if another is needed and this process may add it.
func (s *QueueSharder[Q]) addIfNeeded(there int) error {
	full, err := s.measure()
	if err != nil {
		return err
	}
	if there == 0 {
		return s.add(there)
	}
	if !full {
		return nil
	}
	if leads, err := s.leads(); err != nil || !leads {
		return err
	}
	if there >= s.maxQueues {
		return fmt.Errorf("%w: %d at %s", ErrMaxQueues, there, s.path)
	}
	return s.add(there)
}

// find lists the queues and opens the new ones. It returns the number of queues in the list.
func (s *QueueSharder[Q]) find() (there int, err error) {
	children, err := s.client.GetChildren().ForPath(s.life, s.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return 0, err
	}
	var errs []error
	for _, child := range children {
		if shardNames.MatchString(child) {
			there++
			errs = append(errs, s.addShard(zkpath.Join(s.path, child)))
		}
	}
	return max(there, len(s.shards)), errors.Join(errs...)
}

// measure measures the queues, and reports whether another is needed: one has reached the threshold, and no other is
// preferred.
func (s *QueueSharder[Q]) measure() (full bool, err error) {
	preferred := false
	for _, sh := range s.shards { // no other goroutine changes them
		stat, err := s.client.CheckExists().ForPath(s.life, sh.path)
		if err != nil {
			return false, err
		}
		items := 0
		if stat != nil {
			items = int(stat.NumChildren)
		}
		full = full || items >= s.threshold
		s.mu.Lock()
		sh.preferred = items <= s.threshold/2 || sh.preferred && items < s.threshold
		preferred = preferred || sh.preferred
		s.mu.Unlock()
	}
	return full && !preferred, nil
}

// add adds a queue if the number of queues has not changed. Each addition writes the data of the path, unchanged, with
// the version that was read before the queues were listed, so that only one of several sharders succeeds. The others
// find the queue by its node, which is the same as the queue itself would create.
func (s *QueueSharder[Q]) add(there int) error {
	path := zkpath.Join(s.path, shardName+zkpath.NewProtectionID())
	if _, err := s.client.CheckExists().CreatingParentContainersIfNeeded().ForPath(s.life, path); err != nil {
		return err
	}
	var stat zk.Stat
	data, err := s.client.GetData().Undecompressed().StoringStatIn(&stat).ForPath(s.life, s.path)
	if errors.Is(err, zk.ErrNoNode) { // a server deletes empty containers: look again
		return nil
	}
	if err != nil {
		return err
	}
	if now, err := s.find(); err != nil || now != there {
		return err
	}
	if data == nil {
		data = []byte{} // nil is the default data of the client
	}
	op := s.client.TransactionOp()
	_, err = s.client.Transaction().ForOperations(s.life,
		op.SetData().WithVersion(stat.Version).Uncompressed().ForPath(s.path, data),
		op.Create().ForPath(path, nil))
	switch {
	case errors.Is(err, zk.ErrBadVersion): // another sharder was first, or we were and the answer was lost
		_, err = s.find()
		return err
	case errors.Is(err, zk.ErrNoNode): // look again
		return nil
	case err != nil:
		return err
	}
	return s.addShard(path)
}

// report calls the error handler with a background error.
func (s *QueueSharder[Q]) report(err error) {
	waitqueue.CallErrorHandler(context.WithoutCancel(s.life), s.client, s.label(), s.onError, err)
}

func (s *QueueSharder[Q]) reportToClient(ctx context.Context, err error) {
	s.client.ReportUnhandled(ctx, s.label(), err)
}

// label is the sharder's name in errors.
func (s *QueueSharder[Q]) label() string { return "queues " + s.path }

// addShard builds and starts the queue of a path, unless the sharder has it.
func (s *QueueSharder[Q]) addShard(path string) error {
	if slices.ContainsFunc(s.shards, func(sh *shard[Q]) bool { return sh.path == path }) {
		return nil
	}
	q, err := s.open(path)
	if err != nil {
		return errtext.Wrap(err, "queue", "shard %s", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards = append(s.shards, &shard[Q]{path: path, queue: q, preferred: true})
	if len(s.shards) == 1 {
		close(s.ready)
	}
	return nil
}

// open builds and starts a queue.
func (s *QueueSharder[Q]) open(path string) (q Q, err error) {
	defer usercode.Catch("the allocator", &err)
	if q, err = s.allocate(path); err == nil {
		err = q.Start()
	}
	return q, err
}

// leads reports whether this process may add queues.
func (s *QueueSharder[Q]) leads() (leads bool, err error) {
	defer usercode.Catch("the leader", &err)
	return s.leader.HasLeadership(), nil
}
