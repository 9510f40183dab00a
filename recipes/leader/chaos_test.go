package leader_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/retry"
)

const chaosSession = time.Second

// contest is a chaos test of candidates that kills one leader after the other.
type contest struct {
	*chaos.Test
	t        *testing.T
	pulse    *chaos.Pulse
	witness  *chaos.Witness
	contexts *chaos.Contexts
	victims  []*chaos.Victim
	tokens   map[int64][]int64 // of the nodes that each session has created
	keepNode bool              // a candidate needs one node for all its terms in a session

	mu    sync.Mutex
	terms []*term
	news  chan struct{} // closed when a term begins or ends
}

// term is a leadership as its candidate sees it.
type term struct {
	who        int
	token      int64
	begin, end time.Time // no end: it lasts
}

// TestParticipantsKilledHaveOneLeader has ten contend, and ends the session, the connection or the network of the
// leader. At most one leads at a time, for the server and by the clocks of all, and soon another one does.
func TestParticipantsKilledHaveOneLeader(t *testing.T) {
	for name, start := range candidates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newContest(t)
			ctx, cancel := context.WithCancel(context.Background())
			var watching sync.WaitGroup
			var all []candidate
			chroot := testenv.Chroot(t)
			e.witness = chaos.NewWitness(0, e.nodes(chroot))
			for i := range 10 {
				proxy := curatortest.NewProxyT(t, testenv.Addr(t))
				client := newClient(t, proxy.Addr()+chroot, framework.WithSessionTimeout(chaosSession),
					framework.WithTickTime(testenv.Tick), framework.WithRetryPolicy(retry.Forever(20*time.Millisecond)))
				e.victims = append(e.victims,
					&chaos.Victim{Name: fmt.Sprint("candidate ", i), Proxy: proxy, Session: client.SessionID})
				c := start(t, client)
				all, e.keepNode = append(all, c), c.keepsNode
				watching.Go(func() { e.watch(ctx, i, c, client.SessionID) })
			}
			kills := testenv.Size(6, 9, 200)
			slowest := e.killLeaders(kills)
			for _, c := range all {
				must(t, c.close())
			}
			cancel()
			watching.Wait()
			e.judge()
			looks, blind, overlaps := e.witness.Counts()
			t.Logf("%d kills, %d terms, %d overlaps in %d looks, %d blind, the next after %v at most",
				kills, len(e.terms), overlaps, looks, blind, slowest)
			awaitNoNode(t, testenv.Addr(t)+chroot)
		})
	}
}

func newContest(t *testing.T) *contest {
	t.Helper()
	e := &contest{
		Test: chaos.New(t), t: t, pulse: chaos.NewPulse(), news: make(chan struct{}), tokens: map[int64][]int64{},
	}
	t.Cleanup(e.pulse.Stop)
	e.contexts = chaos.NewContexts(0, chaosSession, e.pulse)
	return e
}

// nodes lists the line as the server has it.
func (e *contest) nodes(chroot string) func() ([]string, error) {
	raw := testenv.Raw(e.t)
	return func() ([]string, error) {
		nodes, _, err := raw.Children(chroot + electionPath)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, nil
		}
		return nodes, err
	}
}

// watch notes the leaderships of a candidate.
func (e *contest) watch(ctx context.Context, who int, c candidate, session func() int64) {
	for {
		l, err := c.next(ctx)
		if err != nil {
			return
		}
		r := &term{who: who, token: l.Token(), begin: time.Now()}
		grant := chaos.Grant{Node: path.Base(l.Path()), Owner: fmt.Sprint(who), Alone: true}
		e.contexts.Granted(l.Context(), session(), grant)
		e.mu.Lock()
		e.terms = append(e.terms, r)
		e.announce()
		e.mu.Unlock()
		e.witness.Granted(e.Test, grant)
		<-l.Context().Done()
		e.mu.Lock()
		if r.end.IsZero() { // else it was over for the server before
			r.end = time.Now()
		}
		e.announce()
		e.mu.Unlock()
	}
}

// announce wakes await. mu is held.
func (e *contest) announce() {
	close(e.news)
	e.news = make(chan struct{})
}

// patience is how long there may be no leader. The time in which this process did not run does not count.
const patience = 20 * time.Second

// leader waits for a term that lasts, another one than before.
func (e *contest) leader(before *term) *term {
	e.t.Helper()
	began := time.Now()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		e.mu.Lock()
		news := e.news
		i := slices.IndexFunc(e.terms, func(r *term) bool { return r != before && r.end.IsZero() })
		var found *term
		if i >= 0 {
			found = e.terms[i]
		}
		e.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-news:
		case now := <-limit.C:
			left := patience - now.Sub(began) + e.pulse.Missed(began, now)
			if left <= 0 {
				e.Errorf("there is no leader")
				e.t.FailNow()
			}
			limit.Reset(left)
		}
	}
}

// killLeaders kills so many leaders, and returns how long it took at most until there was the next.
func (e *contest) killLeaders(kills int) (slowest time.Duration) {
	e.t.Helper()
	random := e.Random(-1)
	ways := []func(*term, *chaos.Victim) (restore func()){e.expire, e.cut, e.darken}
	for n := range kills {
		for _, v := range e.victims {
			v.Proxy.Faults().ResetTrace()
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		r, killed := e.leader(nil), time.Now()
		restore := ways[n%len(ways)](r, e.victims[r.who])
		next := e.leader(r)
		took := next.begin.Sub(killed) - e.pulse.Missed(killed, next.begin)
		slowest = max(slowest, took)
		e.Note("%s leads", e.victims[next.who].Name)
		if limit := chaosSession + time.Second; testenv.Long() && took > limit {
			e.Errorf("the next leads after %v", took)
		}
		restore()
		for _, v := range e.victims {
			e.noteCreated(v)
		}
	}
	return slowest
}

// expire ends the session of a leader. For the server its term is over before it can know.
func (e *contest) expire(r *term, v *chaos.Victim) (restore func()) {
	e.mu.Lock()
	if r.end.IsZero() {
		r.end = time.Now()
	}
	e.mu.Unlock()
	session := v.Session()
	e.NoteExpiry(session)
	err := testenv.Server(e.t).ExpireSession(session)
	if err != nil && !errors.Is(err, zk.ErrSessionExpired) {
		e.Errorf("%v", err)
	}
	e.Note("expired the session of %s", v.Name)
	return func() {}
}

func (e *contest) cut(_ *term, v *chaos.Victim) (restore func()) {
	e.Note("cut %s", v.Name)
	v.Proxy.Faults().CutAll()
	return func() {}
}

func (e *contest) darken(_ *term, v *chaos.Victim) (restore func()) {
	e.Note("nothing comes through from or to %s", v.Name)
	return v.Proxy.Faults().BlackHole(curatortest.Both)
}

// noteCreated notes the nodes that a victim has created since the last call.
func (e *contest) noteCreated(v *chaos.Victim) {
	trace := v.Proxy.Faults().Trace()
	for session, tokens := range created(trace) {
		if len(e.tokens[session]) > 0 { // of interest if the test fails
			e.Note("%s creates node %#x in session %#x, and had %#x", v.Name, tokens, session, e.tokens[session])
		}
		e.tokens[session] = append(e.tokens[session], tokens...)
	}
}

// created returns the tokens of the nodes that each session has created in an election. A request is no node: one that
// was lost is sent again, and one that came before the parents is repeated behind them.
func created(trace []curatortest.TraceEntry) map[int64][]int64 {
	tokens := make(map[int64][]int64)
	for _, entry := range trace {
		isNode := entry.Op == "create2" && path.Base(path.Dir(entry.Path)) == path.Base(electionPath)
		if isNode && entry.Reply && entry.Code == 0 {
			tokens[entry.SessionID] = append(tokens[entry.SessionID], entry.Zxid)
		}
	}
	return tokens
}

// The requests are lost before the server has them, or their answers behind it.
func TestCandidateWithLostRequestsCreatesOneNode(t *testing.T) {
	forEachCandidate(t, func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate) {
		proxy, connect, _ := newProxy(t)
		faults := proxy.Faults()
		create := []string{"create2"}
		faults.Add(curatortest.Rule{Ops: create, Count: 2, Action: curatortest.CutBefore})
		faults.Add(curatortest.Rule{Ops: create, Skip: 3, Count: 1, Action: curatortest.CutAfter}) // behind NONODE
		c := start(t, newClient(t, connect))
		_, err := c.next(testenv.Context(t))
		must(t, err)
		trace := faults.Trace()
		if nodes := created(trace); len(nodes) != 1 || len(slices.Concat(slices.Collect(maps.Values(nodes))...)) != 1 {
			t.Errorf("tokens by session: %v\n%s", nodes, curatortest.FormatTrace(trace))
		}
		must(t, c.close())
	})
}

// judgeNodes fails if a session has created a node in vain: one behind a node that has not led yet, or a second one for
// a candidate that keeps its node. e.mu is held.
func (e *contest) judgeNodes() {
	e.t.Helper()
	for session, tokens := range e.tokens {
		var waited int
		for _, token := range tokens {
			if !slices.ContainsFunc(e.terms, func(r *term) bool { return r.token == token }) {
				waited++
			}
		}
		if waited > 1 || e.keepNode && len(tokens) > 1 {
			e.Errorf("session %#x has created %d nodes, of which %d never led", session, len(tokens), waited)
		}
	}
}

// judge looks at all terms.
func (e *contest) judge() {
	e.t.Helper()
	e.contexts.Check(e.Test, "the election")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.judgeNodes()
	slices.SortStableFunc(e.terms, func(a, b *term) int { return a.begin.Compare(b.begin) })
	for i, r := range e.terms[:max(len(e.terms)-1, 0)] {
		next := e.terms[i+1]
		if next.token < r.token || next.token == r.token && next.who != r.who {
			e.Errorf("candidate %d leads with token %d after candidate %d with %d", next.who, next.token, r.who, r.token)
		}
	}
}
