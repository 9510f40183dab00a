package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// chaosSession is the session timeout of clients in a chaos test on an idle machine.
const chaosSession = time.Second

// chaosPace is the pause between two faults.
var chaosPace = chaos.Pace{Least: 100 * time.Millisecond, Most: 300 * time.Millisecond}

// size is the duration of a chaos test and its least numbers of faults and grants. On a slow machine it takes longer.
type size struct {
	duration       time.Duration
	faults, grants int
}

// scene has the clients of a chaos test and the things that they contend for.
type scene struct {
	*chaos.Test
	t        *testing.T
	observer *framework.Client // whom no fault is meant for
	clients  []*framework.Client
	victims  []*chaos.Victim // the same clients, if each has a proxy of its own
	things   []*thing
	pulse    *chaos.Pulse
	session  time.Duration
	news     chan struct{} // after each grant
	strain   float64       // how many times slower the machine is than one that has time; 0 if it is not measured
}

// thing is what clients contend for: a line in which some, or one, hold it.
type thing struct {
	line     string // the path
	model    porcupine.Model
	witness  *chaos.Witness
	contexts *chaos.Contexts
	history  chaos.History
	guarded  chaos.Guarded

	mu      sync.Mutex
	grants  int
	fenced  int       // grants with a token
	last    time.Time // the last grant
	longest time.Duration
}

// newScene makes a scene on the server of this test binary.
func newScene(t *testing.T, clients int) *scene {
	t.Helper()
	chroot := testenv.Chroot(t)
	s := newEmptyScene(t, testenv.Addr(t)+chroot, chaosSession)
	if err := s.observer.BlockUntilConnected(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	s.strain = chaos.Strain(func() { _, _ = s.nodes("/") })
	s.session = time.Duration(s.strain * float64(chaosSession))
	for i := range clients {
		proxy, connect := newProxy(t, chroot)
		client := s.client(connect)
		s.victims = append(s.victims, &chaos.Victim{
			Name: fmt.Sprint("client ", i+1), Proxy: proxy, Session: client.SessionID,
		})
	}
	return s
}

func newEmptyScene(t *testing.T, connect string, session time.Duration) *scene {
	t.Helper()
	s := &scene{Test: chaos.New(t), t: t, observer: newClient(t, connect), pulse: chaos.NewPulse(), session: session}
	s.news = make(chan struct{}, 1)
	t.Cleanup(s.pulse.Stop)
	return s
}

// client adds a client.
func (s *scene) client(connect string) *framework.Client {
	s.t.Helper()
	client := newClient(s.t, connect,
		framework.WithSessionTimeout(s.session),
		framework.WithTickTime(testenv.Tick), // with the default, a busy machine has less of so short a session to spare
		framework.WithConnectionTimeout(2*time.Second),
		framework.WithRetryPolicy(retry.NTimes(10, 100*time.Millisecond)))
	s.clients = append(s.clients, client)
	return client
}

// add adds a thing that so many may hold at once.
func (s *scene) add(line string, most int, model porcupine.Model) {
	th := &thing{line: line, model: model, contexts: chaos.NewContexts(most, s.session, s.pulse)}
	th.witness = chaos.NewWitness(most, func() ([]string, error) { return s.nodes(line) })
	s.things = append(s.things, th)
}

// nodes returns the names of the nodes in a line, as they are once a write of ours is behind all that was granted. A
// sync would not do: the leader answers it to its own clients though it has not applied yet what its followers have, or
// is no leader any more.
func (s *scene) nodes(line string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		flight := builders.Pipelined(ctx) // on the next connection another server may be behind again
		_, err = s.observer.SetData().ForPath(flight, "/", nil)
		if err == nil {
			names, err = s.observer.GetChildren().ForPath(flight, line)
		}
		switch {
		case err == nil:
			return names, nil
		case errors.Is(err, zk.ErrNoNode):
			return nil, nil
		case !waitqueue.IsOutage(err):
			return nil, err
		}
		_ = s.observer.BlockUntilConnected(ctx)
	}
	return nil, err
}

// clientFaults is what happens to the clients of [newScene].
func (s *scene) clientFaults() []chaos.Fault {
	return []chaos.Fault{
		chaos.Cut(s.victims),
		chaos.Expire(s.victims, testenv.Addr(s.t)),
		chaos.Freeze(s.victims, s.session*3/2),
	}
}

// holding is what a client was granted.
type holding struct {
	parts   []part
	ctx     context.Context // ends when it is lost
	release func(context.Context) error
	// next is acquired before the release; it may be nil.
	next func() (*holding, error)
}

// part is what a holding has of one thing.
type part struct {
	*thing
	nodes              []chaos.Grant
	token              int64 // 0 if it has none
	granted, givenBack any   // operations of the thing's model
}

// attempt is the repeated work of a client. who starts at 1.
type attempt func(ctx context.Context, client *framework.Client, who int, random *rand.Rand) (*holding, error)

// rage has the clients acquire while the faults happen, and judges what came of it.
func (s *scene) rage(size size, pace chaos.Pace, try attempt, kinds ...chaos.Fault) {
	s.t.Helper()
	most := time.Duration(max(s.strain, 1) * float64(3*size.duration+3*time.Minute))
	ctx, cancel := context.WithTimeout(context.Background(), most+time.Minute)
	defer cancel()
	working, stop := context.WithTimeout(ctx, most)
	defer stop()
	start := time.Now()
	var workers sync.WaitGroup
	for i := range s.clients {
		workers.Go(func() { s.work(working, ctx, i+1, try) })
	}
	faults := s.Disturb(working, pace, func(n int) bool {
		s.awaitGrant(working)
		return time.Since(start) >= size.duration && n >= size.faults && s.grants() >= size.grants
	}, kinds...)
	stop()
	workers.Wait()
	for _, th := range s.things {
		th.judge(s)
	}
	s.t.Logf("%d faults, %d grants", faults, s.grants())
	if faults < size.faults || s.grants() < size.grants {
		s.Errorf("%d faults and %d grants are too few", faults, s.grants())
	}
	testenv.Eventually(s.t, func() bool {
		for _, th := range s.things {
			if nodes, err := s.nodes(th.line); err != nil || len(nodes) > 0 {
				return false
			}
		}
		return true
	}, "no node is left")
}

// awaitGrant waits for the next grant, for a few sessions at most: where faults come faster than
// grants there is nothing to be seen.
func (s *scene) awaitGrant(working context.Context) {
	ctx, cancel := context.WithTimeout(working, 3*s.session)
	defer cancel()
	select {
	case <-s.news:
	case <-ctx.Done():
	}
}

// work acquires one thing after the other until working ends; ctx bounds the last release.
func (s *scene) work(working, ctx context.Context, who int, try attempt) {
	client, random := s.clients[who-1], s.Random(who)
	for working.Err() == nil {
		session, called := client.Session(), time.Now()
		h, err := try(working, client, who, random)
		if err != nil {
			continue // whatever happened: nothing was granted
		}
		s.granted(h, who, called)
		for h != nil {
			finish := s.begin(h)
			select { // some hold it long enough for something to happen
			case <-h.ctx.Done():
			case <-working.Done():
			case <-time.After(time.Duration(random.IntN(30)) * time.Millisecond):
			}
			finish()
			var next *holding
			var nextCalled time.Time
			if h.next != nil {
				nextCalled = time.Now()
				if next, err = h.next(); err == nil {
					s.granted(next, who, nextCalled)
				}
			}
			s.letGo(ctx, h, who, session, called)
			h, called = next, nextCalled
		}
	}
}

// granted notes a grant.
func (s *scene) granted(h *holding, who int, called time.Time) {
	now := time.Now()
	select {
	case s.news <- struct{}{}:
	default:
	}
	for _, p := range h.parts {
		p.contexts.Granted(h.ctx, s.clients[who-1].SessionID(), p.nodes...)
		p.note(s, called, now, p.token != 0)
		p.history.Add(who, p.granted, called, now)
		p.witness.Granted(s.Test, p.nodes...)
	}
}

// begin reads what the things guard; finish writes one more.
func (s *scene) begin(h *holding) (finish func()) {
	var writes []func()
	for _, p := range h.parts {
		if p.token == 0 {
			continue
		}
		if value, ok := p.guarded.Read(p.token); ok {
			writes = append(writes, func() { p.guarded.Write(p.token, value+1) })
		}
	}
	return func() {
		for _, write := range writes {
			write()
		}
	}
}

// letGo releases. If the session that was there before the acquire is still there when the server has answered the
// release, the node was there until then. Otherwise it may have gone at any time, even before the client heard of the
// grant: a client without an answer may not know yet that its session has ended.
func (s *scene) letGo(ctx context.Context, h *holding, who int, session *framework.Session, called time.Time) {
	released := time.Now()
	err := h.release(ctx)
	done := time.Now()
	if err != nil { // it goes on in the background, at the longest until the session ends
		done = chaos.Open()
	}
	if err != nil || session == nil || session.Context().Err() != nil {
		released = called
	}
	for _, p := range h.parts {
		p.history.Add(who, p.givenBack, released, done)
	}
}

// note counts a grant, and measures the time since the grant before.
func (th *thing) note(s *scene, called, now time.Time, fenced bool) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.grants++
	if fenced {
		th.fenced++
	}
	since := th.last
	if called.After(since) {
		since = called
	}
	th.longest = max(th.longest, now.Sub(since)-s.pulse.Missed(since, now))
	th.last = now
}

// grants returns how many there were.
func (s *scene) grants() (n int) {
	for _, th := range s.things {
		th.mu.Lock()
		n += th.grants
		th.mu.Unlock()
	}
	return n
}

// judge says whether what happened to the thing is what may happen.
func (th *thing) judge(s *scene) {
	s.t.Helper()
	th.mu.Lock()
	defer th.mu.Unlock()
	looks, blind, overlaps := th.witness.Counts()
	value, accepted, refused := th.guarded.Counts()
	s.t.Logf("%s: %d grants, %d overlaps in %d looks, %d blind, %d writes, %d late ones refused, longest wait %v",
		th.line, th.grants, overlaps, looks, blind, accepted, refused, th.longest)
	if value != accepted || accepted+refused != th.fenced {
		s.Errorf("%s: counter %d after %d writes and %d refusals of %d grants", th.line, value, accepted, refused, th.fenced)
	}
	th.contexts.Check(s.Test, th.line)
	th.history.Check(s.Test, th.line, th.model)
}

// alone is the grant of a node that excludes all others.
func alone(node string, who int) []chaos.Grant {
	return []chaos.Grant{{Node: path.Base(node), Owner: fmt.Sprint(who), Alone: true}}
}

// holds is a hold that has one part.
func (th *thing) holds(hold *locks.Hold, p part) *holding {
	p.thing = th
	return &holding{parts: []part{p}, ctx: hold.Context(), release: hold.Release}
}

// The chaos tests of all locks but the mutex have one size.

func crowdSize() int { return testenv.Size(8, 12, 20) }

func mixedSize() size {
	return testenv.Size(
		size{duration: 3 * time.Second, faults: 8, grants: 30},
		size{duration: 10 * time.Second, faults: 30, grants: 80},
		size{duration: 40 * time.Second, faults: 100, grants: 300},
	)
}
