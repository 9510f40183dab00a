package simulation_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// The times of a world.
const (
	tick              = 500 * time.Millisecond
	sessionTimeout    = 6 * time.Second
	connectionTimeout = 4 * time.Second
	sweepInterval     = 7 * time.Second
	maxNeverUsed      = 5 * sweepInterval // as in ZooKeeper 3.10

	chaosLength = 3 * time.Minute // the time with faults
	calmLimit   = 5 * time.Minute // until every actor has had a last turn without faults
	endLimit    = time.Minute     // until no node and no watch is left
)

// syncLimits are the numbers of ticks for which a server may continue without its leader. Each world has one of them.
var syncLimits = []int{0, 5, 20, 20}

// world is one simulation: an ensemble, processes that contend for resources on it, and faults.
type world struct {
	seed    uint64
	report  *report
	history *history
	judge   *judge
	cluster *curatortest.Cluster
	recipes []recipe
	slots   []*slot
	// leaseCount is the number of leases of the semaphore, nil if it does not change.
	leaseCount *leaseCount
	queues     []*workQueue
	meets      []*meeting
	counters   []*counter
	desired    []*desiredNodes
	shared     []*sharedNode
	owners     atomic.Int64
	looks      int          // number of reads of the servers' decisions
	refused    atomic.Int64 // the last time at which something was refused, in nanoseconds
	refusing   atomic.Int64 // number of faults that refuse something
	hungUp     atomic.Int64 // number of faults so far in which servers hang up at one kind of request
	hangingUp  atomic.Int64 // number of those at work
	faults     atomic.Int64 // number of faults that are at work
	disturbed  atomic.Int64 // the last time at which a fault was at work, in nanoseconds
	// operator is a client with a network without faults.
	operator *framework.Client

	calm   chan struct{} // closed at the end of the faults
	ctx    context.Context
	giveUp context.CancelFunc

	mu        sync.Mutex
	actors    map[*actor]struct{} // those that run
	clients   map[int64]*process  // by their sessions
	allEnded  chan struct{}       // closed when there are none and the world is calm
	violation string              // the first
	evidence  string              // the history before the violation
}

// slot is the place of one process at a time.
type slot struct {
	number int
	lives  int

	mu      sync.Mutex // held while a process starts or ends
	process *process
}

// simulate runs the world of a seed in the bubble of its caller. It returns the history before the first violation, or
// "".
func simulate(seed uint64, r *report, length time.Duration) (violation string) {
	w := newWorld(seed, r)
	w.history.note("seed %d: %d servers, %d processes, %v", seed, len(w.cluster.Servers()), len(w.slots), w.recipes)
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { w.judge.watch(watching) })
	w.createData()
	for _, s := range w.slots {
		w.start(s)
	}
	w.chaos(length)
	w.history.note("calm: no more faults")
	w.setCalm()
	w.awaitLastTurns()
	w.awaitNoRemains()
	w.end()
	stop()
	watch.Wait()
	w.readTraces()
	if w.ctx.Err() == nil {
		for _, u := range w.queues {
			u.ledger.judgeAll()
		}
		for _, c := range w.counters {
			c.judge()
		}
	}
	if err := w.cluster.Close(); err != nil {
		w.violate("the ensemble does not close: %v", err)
	}
	r.add(time.Since(w.history.began), w.judge.grants)
	return w.evidence
}

// newWorld returns the world of a seed.
func newWorld(seed uint64, r *report) *world {
	w := &world{
		seed: seed, report: r, history: newHistory(),
		calm: make(chan struct{}), actors: map[*actor]struct{}{}, clients: map[int64]*process{},
		allEnded: make(chan struct{}),
	}
	w.judge = &judge{world: w}
	w.ctx, w.giveUp = context.WithCancel(context.Background())
	random := w.random("world")
	servers := 3
	if random.IntN(8) == 0 {
		servers = 5
	}
	cluster, err := curatortest.NewCluster(servers, curatortest.WithoutPort(), curatortest.WithTickTime(tick),
		curatortest.WithSweepInterval(sweepInterval), curatortest.WithMaxNeverUsed(maxNeverUsed),
		curatortest.WithSyncLimit(syncLimits[random.IntN(len(syncLimits))]))
	if err != nil {
		panic(err) // the options are wrong
	}
	w.cluster = cluster
	w.operator = newOperator(cluster)
	for i := range 3 + random.IntN(3) {
		w.slots = append(w.slots, &slot{number: i + 1})
	}
	all := allRecipes()
	for _, i := range random.Perm(len(all))[:2+random.IntN(3)] {
		r := all[i](w)
		w.recipes = append(w.recipes, r)
		w.judge.resources = append(w.judge.resources, r.resources...)
	}
	return w
}

func newOperator(cluster *curatortest.Cluster) *framework.Client {
	client, err := framework.New(cluster.ConnectString(), framework.WithDialer(cluster.DialContext),
		framework.WithoutEnsembleTracker(), framework.WithRetryPolicy(retry.NTimes(3, 100*time.Millisecond)))
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		panic(err) // the options are wrong
	}
	return client
}

// random returns the random sequence of a name. It is always the same for the same seed.
func (w *world) random(name string) *rand.Rand { return rand.New(rand.NewPCG(w.seed, sum(name))) }

func sum(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// start starts the next process of a slot.
func (w *world) start(s *slot) {
	s.lives++
	s.process = newProcess(w, fmt.Sprintf("p%d.%d", s.number, s.lives))
	s.process.act(w.recipes)
}

// processes returns the processes that run.
func (w *world) processes() (all []*process) {
	for _, s := range w.slots {
		if s.mu.TryLock() {
			all = append(all, s.process)
			s.mu.Unlock()
		}
	}
	return all
}

// pickProcess returns one of the processes that run, or nil.
func (w *world) pickProcess(random *rand.Rand) *process {
	all := w.processes()
	if len(all) == 0 {
		return nil
	}
	return pick(random, all)
}

// pickClient returns one of the clients of a process that runs, or nil for both.
func (w *world) pickClient(random *rand.Rand) (*process, *framework.Client) {
	p := w.pickProcess(random)
	if p == nil {
		return nil, nil
	}
	return p, pick(random, p.clients)
}

// processOf returns the process with a session, or nil.
func (w *world) processOf(session int64) *process {
	for _, p := range w.processes() {
		for _, client := range p.clients {
			if client.SessionID() == session {
				return p
			}
		}
	}
	return nil
}

func (w *world) isCalm() bool {
	select {
	case <-w.calm:
		return true
	default:
		return false
	}
}

// runs reports whether an actor of a role runs.
func (w *world) runs(role string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.actors {
		if a.role == role {
			return true
		}
	}
	return false
}

// has records that a process has a session.
func (w *world) has(p *process, session int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[session] = p
}

// clientOf returns the process that has or had a session, or nil.
func (w *world) clientOf(session int64) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clients[session]
}

// hasEnded reports whether a session has ended on the servers.
func (w *world) hasEnded(session int64) bool {
	return !slices.Contains(w.cluster.Servers()[0].Sessions(), session)
}

// refuse records that something is refused until the returned function is called.
func (w *world) refuse() (over func()) {
	w.refusing.Add(1)
	return func() {
		w.refused.Store(time.Now().UnixNano())
		w.refusing.Add(-1)
	}
}

// hangUp records that servers hang up at one kind of request until the returned function is called.
func (w *world) hangUp() (over func()) {
	w.hangingUp.Add(1)
	w.hungUp.Add(1)
	return func() { w.hangingUp.Add(-1) }
}

// wasRefused reports whether something was refused since a time.
func (w *world) wasRefused(since time.Time) bool {
	return w.refusing.Load() > 0 || w.refused.Load() >= since.UnixNano()
}

// isQuiet reports whether no fault was at work for a time.
func (w *world) isQuiet(length time.Duration) bool {
	return w.faults.Load() == 0 && time.Now().UnixNano()-w.disturbed.Load() > int64(length)
}

// longestHold returns the longest time for which an actor holds. Some times outlive a session without a server.
func (w *world) longestHold(random *rand.Rand) time.Duration {
	switch {
	case w.isCalm():
		return time.Second
	case random.IntN(4) == 0:
		return 3 * sessionTimeout
	}
	return 3 * time.Second
}

// violate records a violation and ends the world.
func (w *world) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.history.note("VIOLATION: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == "" {
		w.violation = text
		w.evidence = w.history.last()
		w.giveUp()
	}
}

func (w *world) began(a *actor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actors[a] = struct{}{}
}

func (w *world) ended(a *actor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.actors, a)
	if len(w.actors) == 0 && w.isCalm() {
		close(w.allEnded)
	}
}

// setCalm lets every actor end after one more turn.
func (w *world) setCalm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.calm)
	if len(w.actors) == 0 {
		close(w.allEnded)
	}
}

// awaitLastTurns waits until every actor has had its last turn.
func (w *world) awaitLastTurns() {
	timer := time.NewTimer(calmLimit)
	defer timer.Stop()
	select {
	case <-w.allEnded:
		return
	case <-w.ctx.Done():
		return
	case <-timer.C:
	}
	w.violate("no last turn in %v: %s\n%s", calmLimit, w.running(nil), w.tree())
}

// running returns the actors that run, of one process, or of all if it is nil.
func (w *world) running(of *process) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for a := range w.actors {
		if of == nil || a.process == of {
			names = append(names, fmt.Sprintf("%s (waiting: %v, closing: %v)", a.name, a.waiting.Load(), a.closing.Load()))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// awaitNoRemains waits until no node and no watch is left, while the clients are still connected.
func (w *world) awaitNoRemains() {
	if w.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, endLimit)
	defer cancel()
	var left string
	for left = w.remains(); left != "" && ctx.Err() == nil; left = w.remains() {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	if left != "" {
		w.violate("left in the end: %s", left)
	}
}

func (w *world) remains() string {
	leader, err := w.cluster.Leader()
	if err != nil {
		return err.Error()
	}
	var left []string
	for _, r := range w.judge.resources {
		for _, l := range r.lines {
			for _, child := range leader.Children(l.path) {
				left = append(left, l.path+"/"+child)
			}
		}
	}
	for _, d := range w.desired {
		left = append(left, d.remains(leader)...)
	}
	for _, s := range w.cluster.Servers() {
		watched, err := s.FourLetterWord(w.ctx, "wchp")
		if err != nil {
			return err.Error()
		}
		if watched = strings.TrimSpace(watched); watched != "" {
			left = append(left, "watches "+watched)
		}
	}
	return strings.Join(left, ", ")
}

// tree returns the nodes of all lines, with their owners.
func (w *world) tree() string {
	leader, err := w.cluster.Leader()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range w.judge.resources {
		for _, l := range r.lines {
			for _, child := range leader.Children(l.path) {
				node, _ := leader.Node(l.path + "/" + child)
				fmt.Fprintf(&b, "%s/%s of session %#x\n", l.path, child, node.Stat.EphemeralOwner)
			}
		}
	}
	for _, u := range w.queues {
		b.WriteString(u.ledger.stuck())
	}
	for _, d := range w.desired {
		b.WriteString(strings.Join(d.remains(leader), "\n") + "\n")
	}
	for _, m := range w.meets {
		fmt.Fprintf(&b, "for %d members:\n%s\n", m.members, m.story.last())
	}
	return b.String()
}

// end ends all processes. Nothing of a client may be left at the servers then.
func (w *world) end() {
	var leaving sync.WaitGroup
	for _, s := range w.slots {
		leaving.Go(func() {
			s.process.leave()
			s.process.closeNetwork()
		})
	}
	leaving.Wait()
	if err := w.operator.Close(); err != nil {
		w.history.note("the operator does not leave: %v", err)
	}
	if w.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, endLimit)
	defer cancel()
	server := w.cluster.Servers()[0]
	if server.Eventually(ctx, func() bool { return len(server.Sessions()) == 0 }) != nil {
		w.violate("sessions are left: %#x", server.Sessions())
	}
	synctest.Wait() // the servers see the end of each connection
	for _, s := range w.cluster.Servers() {
		if n := s.Faults().Connections(); n > 0 {
			w.violate("%d connections are left", n)
		}
	}
}
