package produce

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// settleFirst takes the answer to the first batch. If some of its puts must be submitted again, it first waits for the
// answers to all other batches, so that no put is overtaken.
func (p *Producer) settleFirst() {
	left, err := p.settle(p.sent[0])
	if err == nil {
		p.sent = p.sent[1:]
		return
	}
	sent := p.sent
	p.sent = nil
	for _, b := range sent[1:] {
		more, cause := p.settle(b)
		if cause == nil && reply.IsThrottled(err) { // the server has put later ones first
			p.fail(left, err)
			left = nil
		}
		left = append(left, more...)
		if waitqueue.IsOutage(cause) {
			err = cause
		}
	}
	if reply.MayBeApplied(err) {
		if p.alone = len(left); len(sent) == 1 && len(left) == 1 {
			left = p.dropTooLarge(left)
		}
	}
	p.mu.Lock()
	p.unsent += len(left)
	p.mu.Unlock()
	p.unload(left)
	switch {
	case waitqueue.IsPassing(err):
		p.reconnect()
	case errors.Is(err, zk.ErrNoNode):
		p.ensured = false
		if p.missing++; p.missing > 1 {
			_ = waitqueue.Pause(p.life, reply.Doubled(waitqueue.OutagePause, maxOutagePause, p.missing))
		}
	}
}

// settle waits for the answer to b and completes the puts with a final outcome. It returns the others, which must be
// submitted again because of err.
func (p *Producer) settle(b *batch) (left []*Put, err error) {
	paths, err := b.wait(p.life)
	if err == nil {
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
		p.fail(b.puts, node.ErrClosed)
	case lost && p.Resend, lost && !b.puts[0].uncertain, reply.IsThrottled(err):
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

// dropTooLarge fails a put that was lost alone too often, and returns what must be submitted again.
func (p *Producer) dropTooLarge(alone []*Put) []*Put {
	x := alone[0]
	if len(x.data) <= reply.SuspectSize {
		return alone
	}
	if x.losses++; x.losses < reply.MaxLosses {
		return alone
	}
	p.fail(alone, reply.LostEachTime(len(x.data)))
	return nil
}

// failure returns the error of x, nil if err is nil.
func (p *Producer) failure(x *Put, err error) error {
	if err == nil {
		return nil
	}
	if x.uncertain {
		err = errtext.Join(node.ErrUncertain, errtext.Sent(err, framework.ErrNotSent))
	}
	return p.ItemError(x.data, err)
}

func (p *Producer) fail(puts []*Put, err error) {
	for _, x := range puts {
		p.complete(x, "", p.failure(x, err))
	}
}

// complete publishes the outcome of x. A failure is visible to a flush before Wait returns.
func (p *Producer) complete(x *Put, path string, err error) {
	notify := x.Ended(path, err)
	p.mu.Lock()
	if err != nil && !x.back {
		p.failures.add(err)
	}
	if notify != nil {
		p.notified = true
		p.Listeners.Do(notify)
	}
	delete(p.pending, x)
	p.mu.Unlock()
	x.end(path, err)
	<-p.slots
}

// giveUp completes all puts when the life ends.
func (p *Producer) giveUp() {
	p.stop(node.ErrClosed)
	for _, b := range p.sent {
		_, _ = p.settle(b)
	}
	p.sent = nil
	p.mu.Lock()
	left := p.queue
	p.queue = nil
	p.mu.Unlock()
	p.fail(left, node.ErrClosed)
}
