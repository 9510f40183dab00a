package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/zkpath"
)

// ledger has the record of each item of a queue: the decisions of the servers, and the results of puts and deliveries.
// It compares them with the promises of the queue.
type ledger struct {
	world *world
	queue *workQueue

	mu        sync.Mutex
	children  *children
	locks     *children // nil without a lock path
	items     map[string]*item
	order     []*item            // in the order of the puts
	byPath    map[string][]*item // of the nodes that have held them
	lockOf    map[string][]*node
	requested map[string]map[*process]bool // processes that requested the deletion of a node, by its path
	newest    map[string]*node             // the node of the last delivery that began, by consumer
	latest    map[string]*item             // the last item that got a node, by putter
	wiped     []span                       // when an operator deletes the path of the queue, or the path of its locks
	mistaken  []mistake
}

// span is a time from its beginning to its end.
type span struct{ from, to time.Time }

func newLedger(u *workQueue) *ledger {
	l := &ledger{
		world: u.world, queue: u, children: newChildren(u.path),
		items: map[string]*item{}, byPath: map[string][]*item{}, lockOf: map[string][]*node{},
		requested: map[string]map[*process]bool{}, newest: map[string]*node{},
		latest: map[string]*item{},
	}
	if u.locks != "" {
		l.locks = newChildren(u.locks)
	}
	return l
}

// count counts an event for the report.
func (l *ledger) count(what string) { l.world.report.count(what) }

func (l *ledger) violate(i *item, format string, args ...any) {
	l.world.violate("%s: "+format+"\n%v", append(append([]any{l.queue.path}, args...), i)...)
}

// observe records the decisions of the servers since its last call.
func (l *ledger) observe(leader *curatortest.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(leader)
}

// look is observe. mu is held.
func (l *ledger) look(leader *curatortest.Server) {
	if l.locks != nil {
		born, ended := l.locks.update(leader)
		for _, n := range born {
			l.lockOf[n.name] = append(l.lockOf[n.name], n)
		}
		for _, n := range ended {
			n.withSession = l.world.hasEnded(n.owner)
		}
	}
	born, ended := l.children.update(leader)
	for _, n := range born {
		l.judgeBirth(n)
	}
	for _, n := range ended {
		if l.locks != nil {
			l.judgeEnd(n)
		}
	}
}

// judgeBirth judges a new node. Its items may have had a node before.
func (l *ledger) judgeBirth(n *node) {
	for _, value := range valuesIn(n.data) {
		i := l.items[value]
		if i == nil {
			l.world.violate("%s: %s is in %s and nobody has put it", l.queue.path, value, n.path)
			continue
		}
		if len(i.nodes) > 0 {
			l.judgeBirthAgain(i, n)
		} else {
			l.judgeOrder(i, n)
		}
		i.nodes = append(i.nodes, n)
		l.byPath[n.path] = append(l.byPath[n.path], i)
		l.judgePut(i)
	}
}

// judgeBirthAgain judges an item that gets another node: it was put back, or its put had no answer.
func (l *ledger) judgeBirthAgain(i *item, n *node) {
	ended := slices.ContainsFunc(i.nodes, func(before *node) bool { return !before.isThere() })
	switch {
	case ended && !l.isDone(i):
		l.count("item put back")
	case ended && l.locks != nil && l.hadDeletedLock(i):
		l.count("duplicate: put back by the one whose lock was deleted")
	case l.locks != nil && i.put.queue.actor.process.wasSuspended(i.put.began):
		l.count("duplicate: put again after a lost connection")
	default:
		l.violate(i, "it is put twice, now in %s", n.name)
	}
}

// isDone reports whether an item was consumed by the last holder of its newest node's lock, or by anybody if there are
// no locks.
func (l *ledger) isDone(i *item) bool {
	last := i.nodes[len(i.nodes)-1]
	lock := l.lastLock(last)
	return slices.ContainsFunc(i.deliveries, func(d *delivery) bool {
		return d.node == last && d.lock == lock && d.result == itemDone
	})
}

// hadDeletedLock reports whether an operator has deleted a lock of the item's newest node. Whoever had that may put the
// rest of its batch back, while another is done with the item.
func (l *ledger) hadDeletedLock(i *item) bool {
	lock := l.lastLock(i.nodes[len(i.nodes)-1])
	return lock != nil && (l.isLost(lock) && !lock.withSession || l.wasDeleted(lock))
}

// lastLock returns the last lock that a node had, nil if it had none.
func (l *ledger) lastLock(n *node) *node {
	if locks := l.lockOf[n.name]; len(locks) > 0 {
		return locks[len(locks)-1]
	}
	return nil
}

// judgePut judges an item in the queue by the reported outcome of its put.
func (l *ledger) judgePut(i *item) {
	if p := i.put; p.isOver() && p.err != nil && !errors.Is(p.err, queue.ErrUncertain) && len(i.nodes) > 0 {
		l.violate(i, "it is in the queue, and its put has failed")
	}
}

// judgeEnd judges the end of a node in a queue with a lock path: only consumed items may go.
func (l *ledger) judgeEnd(n *node) {
	for _, value := range valuesIn(n.data) {
		i := l.items[value]
		if i == nil || l.world.judge.wasTakenSince(l.queue.resource, n.path, n.born) || l.isWiped(n) || i.put.requested {
			continue
		}
		putBack := slices.ContainsFunc(i.nodes, func(after *node) bool { return !after.born.Before(n.ended) })
		consumed := slices.ContainsFunc(i.deliveries, func(d *delivery) bool {
			if d.node != n || d.ended.After(n.ended) {
				return false
			}
			drops := l.queue.mode == queue.DeleteOnError && d.queue.consumes
			return d.result == itemDone || d.result == itemFailed && drops
		})
		if consumed || putBack {
			continue
		}
		d := l.settledAs(n)
		if d == nil {
			l.violate(i, "it is lost: %s is gone, and nobody has consumed it", n.name)
			continue
		}
		l.mistaken = append(l.mistaken, mistake{item: i, of: d})
	}
}

// mistake is the end of an item that has got the name of one that a consumer has ended after its path was deleted.
type mistake struct {
	item *item
	of   *delivery // of the other
}

// settledAs returns a delivery of an item that had the path of a later node, and whose lock outlived the path.
func (l *ledger) settledAs(n *node) *delivery {
	for _, i := range l.byPath[n.path] {
		for _, d := range i.deliveries {
			if d.node != n && d.node != nil && d.node.path == n.path && d.node.epoch != n.epoch &&
				d.lock != nil && (d.lock.isThere() || d.lock.ended.After(n.born)) {
				return d
			}
		}
	}
	return nil
}

// judgeMistake judges the loss of an item by such an end: its consumer, if it lives, reports it.
func (l *ledger) judgeMistake(m mistake) {
	isReport := func(text string) bool { return strings.Contains(text, queue.ErrUncertain.Error()[len("queue: "):]) }
	p := m.of.queue.actor.process
	switch {
	case slices.ContainsFunc(m.item.reported, isReport), slices.ContainsFunc(m.of.item.reported, isReport):
		l.count("lost: reported as an item of the deleted path")
	case p.dead.Load(), p.left.Load(), m.of.queue.closed:
	default:
		l.violate(m.item, "it is lost, as it got the name of an item of the deleted path, and that is not reported")
	}
}

// wipe records that an operator deletes the path of the queue, until the returned function is called.
func (l *ledger) wipe() (over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.wiped)
	l.wiped = append(l.wiped, span{from: time.Now()})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wiped[i].to = time.Now()
	}
}

// isWiped reports whether a node ended while an operator deleted the path.
func (l *ledger) isWiped(n *node) bool {
	return slices.ContainsFunc(l.wiped, func(s span) bool {
		return !n.ended.Before(s.from) && (s.to.IsZero() || !n.ended.After(s.to))
	})
}

// wasWiped reports whether an operator has deleted the path since a time.
func (l *ledger) wasWiped(since time.Time) bool {
	return slices.ContainsFunc(l.wiped, func(s span) bool { return s.to.IsZero() || !s.to.Before(since) })
}

// putBegan records the items of a put, and returns their values.
func (l *ledger) putBegan(p *put, n int) (values []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.queue.puts = append(p.queue.puts, p)
	for range n {
		i := &item{value: fmt.Sprintf("[item %d of %s]", len(l.order), p.putter), put: p}
		l.items[i.value] = i
		l.order = append(l.order, i)
		p.items = append(p.items, i)
		values = append(values, i.value)
		l.count("items put")
	}
	return values
}

// putEnded records the outcome of a put.
func (l *ledger) putEnded(value, at string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.items[value]
	p := i.put
	if p.queue.actor.process.dead.Load() {
		return // the item is delivered to no consumer
	}
	if p.isOver() {
		l.violate(i, "the outcome of its put is reported twice, now: %v", err)
		return
	}
	p.ended, p.path, p.err = time.Now(), at, err
	switch {
	case err == nil && len(i.nodes) == 0 && l.wasWiped(p.began):
		l.count("put, and deleted with the queue at once") // between two looks at the servers
	case err == nil && !slices.ContainsFunc(i.nodes, func(n *node) bool { return n.path == at }):
		l.violate(i, "its put has succeeded, and there was no node %q", at)
	case errors.Is(err, queue.ErrUncertain):
		l.count("reported: put with an unknown outcome")
	}
	l.judgePut(i)
}

// flushed judges the result of a flush by the puts before it.
func (l *ledger) flushed(o *openQueue, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judgeFlush(o, err, "a flush")
}

func (l *ledger) judgeFlush(o *openQueue, err error, what string) {
	if o.actor.process.dead.Load() {
		return
	}
	for _, p := range o.puts {
		switch {
		case !p.isOver() && err == nil:
			l.violate(p.items[0], "%s returns, and its outcome is not reported", what)
		case p.isOver() && p.err != nil && err == nil && !isRefused(p.err):
			l.violate(p.items[0], "%s succeeds, and a put has failed", what)
		}
	}
	o.puts = slices.DeleteFunc(o.puts, (*put).isOver) // one flush reports a failure, the next does not
}

// isRefused reports whether Put itself has returned the error: a flush does not report it again.
func isRefused(err error) bool {
	var failed *queue.ItemError
	return !errors.As(err, &failed)
}

func (l *ledger) removing(p *put) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.requested = true
}

// removed records the outcome of a removal by id.
func (l *ledger) removed(p *put, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		p.removed = time.Now()
		l.count("items removed by id")
	}
	if n == 0 && err == nil && !slices.ContainsFunc(p.items[0].nodes, func(n *node) bool { return !n.isThere() }) {
		p.requested = false // consumers get it
	}
}

// begin judges an item when a consumer gets it.
func (l *ledger) begin(ctx context.Context, o *openQueue, loop, value string, info queue.Info) *delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leader, err := l.world.cluster.Leader(); err == nil { // the consumer may have been faster than the judge
		l.look(leader)
	}
	d := &delivery{value: value, queue: o, ctx: ctx, began: time.Now()}
	o.running++
	if o.actor.process.dead.Load() {
		d.result = itemVoid
		return d
	}
	i := l.items[value]
	if i == nil {
		l.world.violate("%s: %s is delivered and nobody has put it", l.queue.path, value)
		return d
	}
	before := i.deliveries
	i.deliveries = append(i.deliveries, d)
	d.item, d.attempt = i, len(before)
	l.count("deliveries")
	d.node = newestNode(i.nodes, func(n *node) bool { return n.path == info.Path })
	if o.closed {
		l.violate(i, "it is delivered to %s after Close", o.actor.name)
	}
	switch {
	case d.node == nil:
		l.violate(i, "it is delivered from %s, where it never was", info.Path)
	case l.locks == nil:
		l.judgeUnlocked(d, before, loop)
	default:
		l.judgeLocked(d, before)
	}
	first := d.node != nil && valuesIn(d.node.data)[0] == value
	if first && errors.Is(context.Cause(ctx), queue.ErrLockLost) {
		l.violate(i, "it is delivered to %s, whose lock is known to be lost", o.actor.name)
	}
	if l.queue.kind == delayQueue && d.began.Before(i.put.due.Truncate(time.Millisecond)) {
		l.violate(i, "it is delivered to %s %v before it is due", o.actor.name, time.Until(i.put.due))
	}
	if len(i.deliveries) == mostDeliveries {
		l.violate(i, "it is delivered %d times", mostDeliveries)
	}
	return d
}

// mostDeliveries is the highest number of deliveries of an item with pauses after failures.
const mostDeliveries = 60

func newestNode(nodes []*node, is func(n *node) bool) *node {
	for _, n := range slices.Backward(nodes) {
		if is(n) {
			return n
		}
	}
	return nil
}

// judgeUnlocked judges a delivery without a lock path: the node is deleted, and there is no other delivery.
func (l *ledger) judgeUnlocked(d *delivery, before []*delivery, loop string) {
	i, o := d.item, d.queue
	if d.node.isThere() {
		l.violate(i, "it is delivered to %s, and %s is still there", o.actor.name, d.node.name)
	}
	for _, other := range before {
		if other.node == d.node {
			l.violate(i, "it is delivered twice, now to %s", o.actor.name)
		}
	}
	if !i.put.removed.IsZero() && !i.put.isSplit() {
		l.violate(i, "it is delivered to %s, and was removed", o.actor.name)
	}
	if o.consumes && o.concurrency > 1 || o.kind == priorityQueue || o.kind == delayQueue {
		return
	}
	consumer := fmt.Sprintf("%p %s", o, loop)
	if last := l.newest[consumer]; last != nil && last.epoch == d.node.epoch && numberOf(last) > numberOf(d.node) &&
		!l.world.wasRefused(d.node.born) {
		l.violate(i, "%s gets it after %s", o.actor.name, last.name)
	}
	l.newest[consumer] = d.node
}

// judgeLocked judges a delivery with a lock path: the item is locked and in the queue, and the end of every other
// delivery explains this one.
func (l *ledger) judgeLocked(d *delivery, before []*delivery) {
	i, o := d.item, d.queue
	d.lock = newestNode(l.lockOf[d.node.name], func(n *node) bool { return o.actor.process.had(n.owner) })
	if d.lock == nil || !d.lock.isThere() {
		d.lock = cmp.Or(l.unseenLock(d), d.lock)
	}
	if d.lock == nil {
		l.violate(i, "it is delivered to %s, which never had a lock", o.actor.name)
		return
	}
	if !d.node.isThere() && d.node.ended.Before(d.lock.born) {
		// The process has tried to lock it again, while it delivers a batch whose lock an operator has deleted.
		d.lock = newestNode(l.lockOf[d.node.name], func(n *node) bool {
			return o.actor.process.had(n.owner) && !n.born.After(d.node.ended) && !n.withSession && l.isLost(n)
		})
	}
	if d.lock == nil {
		l.violate(i, "it is delivered to %s, which has locked it when it was gone", o.actor.name)
		return
	}
	if at := i.put.removed; !at.IsZero() && d.lock.born.After(at) && len(i.nodes) == 1 {
		l.violate(i, "it is delivered to %s, and was removed", o.actor.name)
	}
	why := ""
	for _, other := range before {
		if other.node != d.node {
			continue
		}
		if why = l.explain(other, d); why == "" {
			l.violate(i, "it is delivered again, to %s, and nothing explains it", o.actor.name)
			return
		}
	}
	if why != "" {
		l.count("duplicate: " + why)
	}
}

// unseenLock returns a lock of a delivery that is newer than the one that was seen, and ended before anybody looked, as
// the answer to its create shows. It returns nil if there is none.
func (l *ledger) unseenLock(d *delivery) *node {
	path := zkpath.Join(l.queue.locks, d.node.name)
	var newest *node
	known := d.node.czxid
	if d.lock != nil {
		known = d.lock.czxid
	}
	for _, s := range l.world.cluster.Servers() {
		for _, e := range s.Trace() {
			if !e.Reply || e.Op != "create2" || e.Code != 0 || e.Path != path || e.Zxid <= known ||
				!d.queue.actor.process.had(e.SessionID) || newest != nil && e.Zxid < newest.czxid {
				continue
			}
			newest = &node{name: d.node.name, path: path, czxid: e.Zxid, owner: e.SessionID}
		}
	}
	if newest != nil {
		newest.born, newest.ended = l.locks.between(newest.czxid)
		newest.withSession = l.world.hasEnded(newest.owner)
		l.count("lock that ended before anybody looked")
		l.lockOf[newest.name] = append(l.lockOf[newest.name], newest)
	}
	return newest
}

// explain returns the reason for another delivery, or "" if there is none.
func (l *ledger) explain(before, again *delivery) string {
	lock := before.lock
	switch {
	case lock == nil:
		return "its lock was never seen" // this was judged before
	case before.queue.actor.process.dead.Load():
		return "the process died"
	case again.lock != lock && !again.lock.born.After(lock.born) && l.isLost(again.lock):
		return "the lock was lost before the item was begun"
	case again.lock == lock && l.wasDeleted(lock):
		// The process has locked the item again, while it delivered the rest of a batch that it had locked before.
		return "the lock of its batch was deleted"
	case l.hadLostLock(again):
		return "an earlier lock of its batch was lost"
	case lock.isThere():
		return "" // so two have it
	case lock.withSession:
		return "the session was lost"
	case l.isLost(lock):
		return "the lock was deleted"
	case l.wasDeleted(lock):
		return "an earlier lock of the item was deleted"
	case l.world.judge.wasTakenSince(l.queue.resource, before.node.path, before.node.born):
		return "the item was deleted"
	case before.queue.closing && !before.queue.consumes && l.isOpen(lock, before.node):
		return "the queue was closed before the item was ended"
	case before.reported && before.queue.closing:
		return "reported that Close has not waited"
	}
	return ""
}

// hadLostLock reports whether the process of a delivery has lost an earlier lock of the node, and has locked it again.
// It delivers the rest of the batch that it had locked before.
func (l *ledger) hadLostLock(d *delivery) bool {
	return slices.ContainsFunc(l.lockOf[d.node.name], func(n *node) bool {
		return n.born.Before(d.lock.born) && d.queue.actor.process.had(n.owner) && l.isLost(n)
	})
}

// isLost reports whether a lock has ended with its session, or was deleted by an operator.
func (l *ledger) isLost(lock *node) bool {
	return lock.withSession || l.isWiped(lock) || l.world.judge.wasTakenSince(l.queue.resource, lock.path, lock.born)
}

// wasDeleted reports whether an operator has deleted an earlier lock of the same item. The holder of the earlier lock
// may end the newer one.
func (l *ledger) wasDeleted(lock *node) bool {
	return slices.ContainsFunc(l.lockOf[lock.name], func(n *node) bool {
		return n.born.Before(lock.born) && !n.withSession && l.isLost(n)
	})
}

// isOpen reports whether one of the items of a node was pulled under a lock and is not ended.
func (l *ledger) isOpen(lock, n *node) bool {
	for _, value := range valuesIn(n.data) {
		for _, d := range l.items[value].deliveries {
			if d.lock == lock && d.result == itemOpen {
				return true
			}
		}
	}
	return false
}

// end records the result of the work on an item.
func (l *ledger) end(d *delivery, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := d.queue
	o.running--
	o.returned = time.Now()
	if d.result == itemOpen && !o.actor.process.dead.Load() {
		d.result, d.ended = r, time.Now()
	}
}

// reported records a background error.
func (l *ledger) reported(o *openQueue, err error) {
	var about *queue.ItemError
	if !errors.As(err, &about) {
		l.world.history.note("%s: %v", o.actor.name, err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.actor.process.dead.Load() {
		return
	}
	found := valuesIn(about.Data)
	for _, value := range found {
		if i := l.items[value]; i != nil {
			i.lossReported = true
		}
	}
	for _, i := range l.itemsIn(about.Path, found) {
		i.reported = append(i.reported, firstLine(err))
		for _, d := range i.deliveries {
			if d.queue == o && (d.node == nil || d.node.path == about.Path) {
				d.reported = true
			}
		}
	}
}

// itemsIn returns the items that nodes of a path have held, and those with the values.
func (l *ledger) itemsIn(at string, values []string) []*item {
	found := slices.Clone(l.byPath[at])
	for _, value := range values {
		if i := l.items[value]; i != nil && !slices.Contains(found, i) {
			found = append(found, i)
		}
	}
	return found
}

// recordEnd records the result of the end of a pulled item.
func (l *ledger) recordEnd(d *delivery, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.item != nil {
		d.reported, d.item.lossReported = true, true
		d.item.reported = append(d.item.reported, firstLine(err))
	}
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func (l *ledger) closing(o *openQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.closing = true
}

// closeSlack is the time that Close may take beyond its limit.
const closeSlack = time.Second

// closed judges the duration of a Close: it may take the time to flush, from the return of the consumers.
func (l *ledger) closed(o *openQueue, began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.closed = true
	since := began
	if o.consumes && o.returned.After(since) {
		since = o.returned
	}
	if took := time.Since(since); took > o.finalFlush+closeSlack {
		l.world.violate("%s: Close took %v from when the last consumer was back, and has %v",
			o.actor.name, took, o.finalFlush)
	}
	if o.consumes && o.running > 0 {
		l.world.violate("%s: Close is back before %d consumers", o.actor.name, o.running)
	}
	if err == nil {
		l.judgeFlush(o, nil, "Close")
	}
}

// recordRequest records the processes that have requested the deletion of nodes.
func (l *ledger) recordRequest(p *process, paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range paths {
		if l.requested[path] == nil {
			l.requested[path] = map[*process]bool{}
		}
		l.requested[path][p] = true
	}
}

// judgeAll judges all items at the end of the world.
func (l *ledger) judgeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.order {
		if l.locks == nil {
			l.judgeLoss(i)
		}
	}
	for _, m := range l.mistaken {
		l.judgeMistake(m)
	}
}

// stuck returns the records of some items that are still in the queue.
func (l *ledger) stuck() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lives []string
	for _, i := range l.order {
		if slices.ContainsFunc(i.nodes, (*node).isThere) && len(lives) < 3 {
			lives = append(lives, i.String())
		}
	}
	return strings.Join(lives, "\n")
}

// judgeLoss judges an item without a lock path that was never delivered.
func (l *ledger) judgeLoss(i *item) {
	if len(i.deliveries) > 0 || len(i.nodes) == 0 || slices.ContainsFunc(i.nodes, (*node).isThere) {
		return
	}
	last := i.nodes[len(i.nodes)-1]
	switch {
	case l.world.judge.wasTakenSince(l.queue.resource, last.path, last.born) || l.isWiped(last):
		l.count("lost: deleted by an operator")
	case !i.put.removed.IsZero() || i.put.requested:
		l.count("lost: removed by its id")
	case i.lossReported:
		l.count("lost: reported with its bytes")
	case l.hasDied(last):
		l.count("lost: the process died that has claimed it")
	default:
		l.violate(i, "it is lost: nobody has consumed it, and its loss is not reported")
	}
}

// hasDied reports whether a process that has requested the deletion of a node has died.
func (l *ledger) hasDied(n *node) bool {
	for p := range l.requested[n.path] {
		if p.dead.Load() || p.left.Load() {
			return true
		}
	}
	return false
}

// judgeOrder judges the first node of an item: the nodes of one putter are in the order of the puts. A put that is
// reported as uncertain may come later: the client has another session, and a server that stood still has sent the
// create on.
func (l *ledger) judgeOrder(i *item, n *node) {
	last := l.latest[i.put.putter]
	isLate := last != nil && last.put.began.After(i.put.began)
	if isLate && errors.Is(i.put.err, queue.ErrUncertain) && !n.born.Before(i.put.ended) {
		l.count("put with an unknown outcome comes late")
		return
	}
	since := i.put.began
	if isLate && (l.wasWiped(since) || l.children.wasDeleted(since)) { // the later put followed one that found no path
		l.count("put overtaken while the queue was deleted")
		return
	}
	if isLate && l.world.wasRefused(since) && i.put.queue.actor.process.wasSuspended(since) {
		l.count("put refused, overtaken, and tried again as the refusal was lost")
		return
	}
	if isLate && last.nodes[0].epoch == n.epoch {
		l.violate(i, "it gets %s behind one that was put after it:\n%v", n.name, last)
		return
	}
	l.latest[i.put.putter] = i
}
