package simulation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue"
)

// scene is a queue whose nodes a case creates itself.
type scene struct {
	*testing.T
	*workQueue
	o     *openQueue // of a process that puts and consumes
	other *openQueue // of another process
	mine  *framework.Client
	node  string // the newest
}

// inScene runs a case of a queue, with a lock path or without.
func inScene(t *testing.T, kind queueKind, locked bool, test func(s *scene), want string) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.queues = nil
		queueRecipe(w, "cases", kind, locked)
		s := &scene{T: t, workQueue: w.queues[0]}
		s.putters, s.concurrency, s.mode, s.finalFlush = 1, 1, queue.RequeueOnError, time.Second
		s.mine = newOperator(w.cluster)
		defer func() { _ = s.mine.Close() }()
		other := newOperator(w.cluster)
		defer func() { _ = other.Close() }()
		s.o, s.other = s.queueOf("mine", s.mine), s.queueOf("other", other)
		for _, l := range s.resource.lines {
			s.must(createNode(w, l.path))
		}
		test(s)
		s.look()
		s.ledger.judgeAll()
		checkViolation(t, w, want)
	})
}

// queueOf returns the queue of a process that has a client.
func (s *scene) queueOf(name string, client *framework.Client) *openQueue {
	s.must(client.BlockUntilConnected(s.Context()))
	p := &process{world: s.world, name: name, client: client, sessions: map[int64]bool{client.SessionID(): true}}
	return &openQueue{workQueue: s.workQueue, actor: &actor{process: p, name: name}, consumes: true}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) look() {
	time.Sleep(time.Millisecond)
	s.world.observe()
}

// putBegins returns the value of an item.
func (s *scene) putBegins() string {
	p := &put{queue: s.o, putter: "putter", began: time.Now(), due: time.Now().Add(time.Hour)}
	return s.ledger.putBegan(p, 1)[0]
}

// create makes a node with an item.
func (s *scene) create(value string) string {
	s.Helper()
	path, err := s.mine.Create().WithMode(builders.PersistentSequential).
		ForPath(s.Context(), s.path+"/queue-", []byte(value))
	s.must(err)
	s.node = path
	s.look()
	return path
}

// put puts an item successfully.
func (s *scene) put() (value string) {
	s.Helper()
	value = s.putBegins()
	s.ledger.putEnded(value, s.create(value), nil)
	return value
}

func (s *scene) delete(path string) {
	s.Helper()
	s.must(s.mine.Delete().ForPath(s.Context(), path))
	s.look()
}

func (s *scene) lockPath() string { return s.locks + s.node[len(s.path):] }

func (s *scene) lock(o *openQueue) {
	s.Helper()
	s.createLock(o)
	s.look()
}

// createLock is lock, and nobody looks.
func (s *scene) createLock(o *openQueue) {
	s.Helper()
	_, err := o.actor.process.client.Create().WithMode(builders.Ephemeral).ForPath(s.Context(), s.lockPath(), nil)
	s.must(err)
}

func (s *scene) begin(o *openQueue, value string) *delivery {
	return s.ledger.begin(s.Context(), o, "", value, queue.Info{Path: s.node})
}

// settle deletes the newest node, and its lock.
func (s *scene) settle() {
	s.Helper()
	s.delete(s.node)
	s.delete(s.lockPath())
}

// endAsAnother has a consumer end an item of a deleted queue. Another item has its name by then.
func (s *scene) endAsAnother() {
	value := s.put()
	s.lock(s.o)
	d := s.begin(s.o, value)
	s.deleteTree(s.path)
	s.must(createNode(s.world, s.path))
	s.put()
	s.ledger.end(d, itemDone)
	s.settle()
}

func TestLedgerWithLocks(t *testing.T) {
	for name, tt := range map[string]struct {
		play func(s *scene)
		want string
	}{
		"consumed, then gone": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.settle()
		}},
		"gone, not consumed": {want: "it is lost", play: func(s *scene) {
			s.put()
			s.delete(s.node)
		}},
		"gone while it is consumed": {want: "it is lost", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.settle()
		}},
		"gone after a failure": {want: "it is lost", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemFailed)
			s.settle()
		}},
		"deleted by an operator": {play: func(s *scene) {
			s.put()
			s.world.judge.taken(s.resource, s.node, nil, 0)
			s.delete(s.node)
		}},
		"put back after a failure": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemFailed)
			op := s.mine.TransactionOp()
			_, err := s.mine.Transaction().ForOperations(s.Context(), op.Delete().ForPath(s.node),
				op.Create().WithMode(builders.PersistentSequential).ForPath(s.path+"/queue-", []byte(value)),
				op.Delete().ForPath(s.lockPath()))
			s.must(err)
			s.look()
		}},
		"put back after it was consumed": {want: "it is put twice", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.settle()
			s.create(value)
		}},
		"put back after it was consumed, by the one whose lock was deleted": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.world.judge.taken(s.resource, s.lockPath(), nil, 0)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
			s.settle()
			s.create(value)
		}},
		"to two at once": {want: "nothing explains it", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.begin(s.o, value)
		}},
		"again, when its lock was given up": {want: "nothing explains it", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.begin(s.other, value)
		}},
		"again, when the session was lost": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.must(s.world.cluster.ExpireSession(s.mine.SessionID()))
			s.look()
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
		}},
		"again, when the process had died": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.o.actor.process.dead.Store(true)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.begin(s.other, value)
		}},
		"again, when an operator had deleted an earlier lock": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.world.judge.taken(s.resource, s.lockPath(), nil, 0)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.begin(s.other, value)
			s.delete(s.lockPath())
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
		}},
		"again, when the lock of its batch was deleted and the process has locked that again": {play: func(s *scene) {
			first, second := s.putBegins(), s.putBegins()
			path := s.create(first + second)
			s.ledger.putEnded(first, path, nil)
			s.ledger.putEnded(second, path, nil)
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, first), itemDone)
			s.world.judge.taken(s.resource, s.lockPath(), nil, 0)
			s.delete(s.lockPath())
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, second), itemDone)
			s.begin(s.o, first)
			s.begin(s.o, second)
		}},
		"again, and its lock is known to be lost": {want: "known to be lost", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			ctx, cancel := context.WithCancelCause(s.Context())
			cancel(queue.ErrLockLost)
			s.ledger.begin(ctx, s.o, "", value, queue.Info{Path: s.node})
		}},
		"begun when the session was lost and another had it": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.must(s.world.cluster.ExpireSession(s.mine.SessionID()))
			s.look()
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
			s.ledger.end(s.begin(s.o, value), itemDone)
		}},
		"without a lock": {want: "never had a lock", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.other, value)
		}},
		"locked, and the lock deleted, before anybody has looked": {play: func(s *scene) {
			value := s.put()
			s.createLock(s.o)
			s.deleteTree(s.locks)
			s.look()
			d := s.begin(s.o, value)
			s.must(createNode(s.world, s.locks))
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
			s.ledger.end(d, itemDone)
			s.settle()
		}},
		"locked again, and the lock deleted, before anybody has looked": {play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.begin(s.o, value)
			s.o.consumes = false
			s.ledger.closing(s.o)
			s.delete(s.lockPath())
			time.Sleep(time.Millisecond)
			s.createLock(s.o)
			s.deleteTree(s.locks)
			again := *s.o
			again.consumes, again.closing = true, false
			d := s.begin(&again, value)
			s.must(createNode(s.world, s.locks))
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
			s.ledger.end(d, itemFailed)
			s.settle()
		}},
		"locked, and the session ended, before anybody has looked": {play: func(s *scene) {
			value := s.put()
			s.createLock(s.o)
			s.must(s.world.cluster.ExpireSession(s.mine.SessionID()))
			d := s.begin(s.o, value)
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, value), itemDone)
			s.ledger.end(d, itemDone)
			s.delete(s.node)
		}},
		"begun before anybody has looked": {play: func(s *scene) {
			value := s.put()
			s.createLock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.settle()
		}},
		"locked when it was gone": {want: "when it was gone", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.settle()
			s.lock(s.other)
			s.begin(s.other, value)
		}},
		"the rest of a batch, which the process has locked again when it was gone": {play: func(s *scene) {
			first, second := s.putBegins(), s.putBegins()
			path := s.create(first + second)
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, first), itemDone)
			s.world.judge.taken(s.resource, s.lockPath(), nil, 0)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, first), itemDone)
			s.ledger.end(s.begin(s.other, second), itemDone)
			s.settle()
			s.ledger.putEnded(first, path, nil)
			s.ledger.putEnded(second, path, nil)
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, second), itemDone)
		}},
		"put twice": {want: "it is put twice", play: func(s *scene) { s.create(s.put()) }},
		"put twice, with a lost connection": {play: func(s *scene) {
			s.o.actor.process.setState(framework.Suspended, 0)
			s.create(s.put())
		}},
		"not put, and there": {want: "its put has failed", play: func(s *scene) {
			value := s.putBegins()
			s.create(value)
			s.ledger.putEnded(value, "", queue.ErrClosed)
		}},
		"maybe put, and there": {play: func(s *scene) {
			value := s.putBegins()
			s.create(value)
			s.ledger.putEnded(value, "", queue.ErrUncertain)
		}},
		"put, and not there": {want: "there was no node", play: func(s *scene) {
			s.ledger.putEnded(s.putBegins(), s.path+"/queue-0000000000", nil)
		}},
		"put, and deleted with the queue": {play: func(s *scene) {
			value := s.putBegins()
			s.ledger.wipe()()
			s.ledger.putEnded(value, s.path+"/queue-0000000000", nil)
		}},
		"put when the queue had been deleted, and not there": {want: "there was no node", play: func(s *scene) {
			s.ledger.wipe()()
			time.Sleep(time.Millisecond)
			s.ledger.putEnded(s.putBegins(), s.path+"/queue-0000000000", nil)
		}},
		"reported twice": {want: "reported twice", play: func(s *scene) {
			value := s.put()
			s.ledger.putEnded(value, s.node, nil)
		}},
		"without a put": {want: "nobody has put it", play: func(s *scene) { s.create("[item 1 of no put]") }},
		"out of order": {want: "behind one that was put after it", play: func(s *scene) {
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			s.create(second)
			s.create(first)
		}},
		"out of order, and the queue was deleted meanwhile": {play: func(s *scene) {
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			s.ledger.wipe()()
			s.create(second)
			s.create(first)
		}},
		"out of order, after the queue was deleted": {want: "behind one that was put after it", play: func(s *scene) {
			s.ledger.wipe()()
			time.Sleep(time.Millisecond)
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			s.create(second)
			s.create(first)
		}},
		"out of order, when the refusal of the first was lost": {play: func(s *scene) {
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			over := s.world.refuse()
			s.create(second)
			over()
			s.o.actor.process.setState(framework.Suspended, 0)
			s.create(first)
		}},
		"out of order, and refused without a loss": {want: "behind one that was put after it", play: func(s *scene) {
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			over := s.world.refuse()
			s.create(second)
			over()
			s.create(first)
		}},
		"out of order, while there was no queue": {play: func(s *scene) {
			s.put()
			s.deleteTree(s.path)
			s.look()
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			second := s.putBegins()
			s.must(createNode(s.world, s.path))
			s.create(second)
			s.create(first)
		}},
		"ended as an item of the deleted queue, and reported": {play: func(s *scene) {
			s.endAsAnother()
			s.ledger.reported(s.o, &queue.ItemError{Path: s.node, Err: queue.ErrUncertain})
		}},
		"gone, when an item of the deleted queue had lost its lock": {want: "nobody has consumed it", play: func(s *scene) {
			value := s.put()
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.delete(s.lockPath())
			s.deleteTree(s.path)
			s.must(createNode(s.world, s.path))
			s.put()
			s.delete(s.node)
		}},
		"ended as an item of the deleted queue": {want: "that is not reported", play: (*scene).endAsAnother},
		"again, when an earlier lock of its batch was deleted and another has the node": {play: func(s *scene) {
			first, second := s.putBegins(), s.putBegins()
			path := s.create(first + second)
			s.ledger.putEnded(first, path, nil)
			s.ledger.putEnded(second, path, nil)
			s.lock(s.o)
			s.ledger.end(s.begin(s.o, first), itemDone)
			s.world.judge.taken(s.resource, s.lockPath(), nil, 0)
			s.delete(s.lockPath())
			s.lock(s.o)
			s.delete(s.lockPath())
			s.lock(s.other)
			s.ledger.end(s.begin(s.other, second), itemDone)
			s.begin(s.o, second)
		}},
		"out of order, and its put was not known to be uncertain": {
			want: "behind one that was put after it",
			play: func(s *scene) {
				first := s.putBegins()
				time.Sleep(time.Millisecond)
				s.create(s.putBegins())
				s.create(first)
				s.ledger.putEnded(first, "", queue.ErrUncertain)
			},
		},
		"late, and its put was known to be uncertain": {play: func(s *scene) {
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			s.ledger.putEnded(first, "", queue.ErrUncertain)
			s.create(s.putBegins())
			s.create(first)
		}},
		"out of order, behind one that came late": {want: "behind one that was put after it", play: func(s *scene) {
			late := s.putBegins()
			time.Sleep(time.Millisecond)
			first := s.putBegins()
			time.Sleep(time.Millisecond)
			s.ledger.putEnded(late, "", queue.ErrUncertain)
			s.create(s.putBegins())
			s.create(late)
			s.create(first)
		}},
	} {
		t.Run(name, func(t *testing.T) { inScene(t, plainQueue, true, tt.play, tt.want) })
	}
}

func TestLedgerWithoutLocks(t *testing.T) {
	for name, tt := range map[string]struct {
		kind queueKind
		play func(s *scene)
		want string
	}{
		"gone, then consumed": {play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.begin(s.o, value)
		}},
		"gone before anybody has looked, then consumed": {play: func(s *scene) {
			value := s.put()
			s.must(s.mine.Delete().ForPath(s.Context(), s.node))
			s.begin(s.o, value)
		}},
		"consumed while it is there": {want: "is still there", play: func(s *scene) { s.begin(s.o, s.put()) }},
		"consumed twice": {want: "it is delivered twice", play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.begin(s.o, value)
			s.begin(s.other, value)
		}},
		"consumed after Close": {want: "after Close", play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.ledger.closed(s.o, time.Now(), nil)
			s.begin(s.o, value)
		}},
		"consumed, and not there": {want: "where it never was", play: func(s *scene) { s.begin(s.o, s.putBegins()) }},
		"consumed, and removed": {want: "and was removed", play: func(s *scene) {
			value := s.put()
			s.ledger.removing(s.ledger.items[value].put)
			s.delete(s.node)
			s.ledger.removed(s.ledger.items[value].put, 1, nil)
			s.begin(s.o, value)
		}},
		"consumed, and another of its put was put back and removed": {play: func(s *scene) {
			value := s.put()
			p := s.ledger.items[value].put
			s.ledger.removing(p)
			s.delete(s.node)
			p.items = append(p.items, &item{put: p, nodes: []*node{{}, {}}})
			s.ledger.removed(p, 1, nil)
			s.begin(s.o, value)
		}},
		"consumed before it is due": {kind: delayQueue, want: "before it is due", play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.begin(s.o, value)
		}},
		"consumed out of order": {want: "gets it after", play: func(s *scene) {
			first := s.put()
			firstNode := s.node
			second := s.put()
			s.delete(firstNode)
			s.delete(s.node)
			s.begin(s.o, second)
			s.node = firstNode
			s.begin(s.o, first)
		}},
		"lost": {want: "it is lost", play: func(s *scene) {
			s.put()
			s.delete(s.node)
		}},
		"lost, and reported": {play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.ledger.reported(s.o, &queue.ItemError{Path: s.node, Data: []byte(value), Err: queue.ErrUncertain})
		}},
		"lost, and reported without its bytes": {want: "it is lost", play: func(s *scene) {
			s.put()
			s.delete(s.node)
			s.ledger.reported(s.o, &queue.ItemError{Path: s.node, Err: queue.ErrUncertain})
		}},
		"lost with a process": {play: func(s *scene) {
			s.put()
			s.ledger.recordRequest(s.o.actor.process, []string{s.node})
			s.delete(s.node)
			s.o.actor.process.dead.Store(true)
		}},
		"removed by its id": {play: func(s *scene) {
			value := s.put()
			s.ledger.removing(s.ledger.items[value].put)
			s.delete(s.node)
			s.ledger.removed(s.ledger.items[value].put, 1, nil)
		}},
		"flushed, and the put has failed": {want: "a put has failed", play: func(s *scene) {
			s.ledger.putEnded(s.putBegins(), "", &queue.ItemError{Err: queue.ErrUncertain})
			s.ledger.flushed(s.o, nil)
		}},
		"flushed, and not reported": {want: "its outcome is not reported", play: func(s *scene) {
			s.putBegins()
			s.ledger.flushed(s.o, nil)
		}},
		"flushed with an error": {play: func(s *scene) {
			s.ledger.putEnded(s.putBegins(), "", &queue.ItemError{Err: queue.ErrUncertain})
			s.ledger.flushed(s.o, errors.New("a put has failed"))
		}},
		"closed late": {want: "Close took", play: func(s *scene) {
			s.ledger.closed(s.o, time.Now().Add(-time.Minute), nil)
		}},
		"closed when the consumer is back": {play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.ledger.end(s.begin(s.o, value), itemDone)
			s.ledger.closed(s.o, time.Now().Add(-time.Minute), nil)
		}},
		"closed before the consumer is back": {want: "back before 1 consumers", play: func(s *scene) {
			value := s.put()
			s.delete(s.node)
			s.begin(s.o, value)
			s.ledger.closed(s.o, time.Now(), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) { inScene(t, tt.kind, false, tt.play, tt.want) })
	}
}

// TestQueueThatIsNeverEmptyIsAViolation starts consumers that wait for an item that is never taken.
func TestQueueThatIsNeverEmptyIsAViolation(t *testing.T) {
	inScene(t, plainQueue, true, func(s *scene) {
		s.put()
		s.world.began(s.o.actor)
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.awaitEmpty(ctx)
			s.world.ended(s.o.actor)
		}()
		s.world.setCalm()
		s.world.awaitLastTurns()
		cancel()
		<-done
	}, "no last turn")
}

// TestPullerPullsWhatCloseHasPutBack delays an answer: the queue is empty, and then Close puts the item back.
func TestPullerPullsWhatCloseHasPutBack(t *testing.T) {
	inScene(t, plainQueue, false, func(s *scene) {
		watching, stop := context.WithCancel(s.Context())
		var watch sync.WaitGroup
		watch.Go(func() { s.world.judge.watch(watching) })
		defer watch.Wait()
		defer stop()
		p := newProcess(s.world, "p1.1")
		defer p.closeNetwork()
		defer p.leave()
		a := &actor{process: p, name: "puller", random: s.world.random("puller")}
		s.pullers, s.maxItems = 1, 0

		o := s.open(a, false)
		s.must(o.put(s.Context(), nil, s.ledger.putBegan(&put{queue: o, began: time.Now()}, 1)...))
		s.must(o.close())
		s.world.setCalm()
		late := make([]*curatortest.Injection, 0, len(s.world.cluster.Servers()))
		for _, server := range s.world.cluster.Servers() {
			late = append(late, server.Faults().Add(curatortest.Rule{
				Ops: []string{"delete"}, Action: curatortest.DelayReply, Delay: tick + tick/2, Count: 1, MayMiss: true,
			}))
		}
		s.pull(s.Context(), a)
		hits := 0
		for _, in := range late {
			hits += in.Hits()
			in.Remove()
		}
		if hits == 0 {
			s.Error("no answer was late")
		}
		leader, err := s.world.cluster.Leader()
		s.must(err)
		if left := leader.Children(s.path); len(left) > 0 {
			s.Errorf("left in the queue: %v", left)
		}
	}, "")
}
