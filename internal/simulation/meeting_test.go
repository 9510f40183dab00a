package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/barrier"
)

// meeting is a double barrier of a world. It judges whether the members enter and leave together.
type meeting struct {
	world    *world
	resource *resource
	members  int
	role     string
	over     chan struct{} // closed when every member has had a round without faults

	mu       sync.Mutex
	children *children
	openings []*opening
	enough   time.Time // the last time with enough members for an opening
	rounds   map[*actor]bool
	story    *history // of the barrier alone
}

// readyNode lets the members of a double barrier enter.
const readyNode = "ready"

// opening is one opening of the barrier.
type opening struct {
	ready    *node
	members  []*node   // that were there when it opened
	deserted time.Time // when the last member had left, zero before that
}

// visit is one round of a member.
type visit struct {
	actor    *actor
	called   time.Time // Enter
	openings []*opening
	node     *node
	left     bool // Leave has succeeded
}

// meetingRecipe is a double barrier with a member in each process. Some members may have to wait for the next round.
func meetingRecipe(w *world) recipe {
	random := w.random("meeting")
	m := &meeting{
		world: w, resource: newResource("/meeting"), members: len(w.slots), role: "member", over: make(chan struct{}),
		children: newChildren("/meeting"), rounds: map[*actor]bool{}, story: newHistory(),
	}
	m.resource.isKept = func(leader *curatortest.Server, name string) bool {
		// A member in Enter gets no event of the end of its node, nor of an opening that it has missed.
		return name == readyNode || !leader.Exists(m.resource.path+"/"+readyNode)
	}
	if random.IntN(3) == 0 {
		m.members = 2 + random.IntN(len(w.slots)-1)
	}
	w.meets = append(w.meets, m)
	return recipe{name: "meeting", resources: []*resource{m.resource}, actors: []role{{m.role, m.takePart}}}
}

// takePart enters and leaves, again and again, until every member has had a round without faults.
func (m *meeting) takePart(ctx context.Context, a *actor) {
	w := m.world
	member := barrier.NewDistributedDoubleBarrier(a.process.client, m.resource.path, m.members)
	var before *visit
	for ctx.Err() == nil {
		last := w.isCalm()
		m.story.note("%s comes", a.name)
		v, err := m.enter(ctx, a, member, before, last)
		if err == nil {
			before = v
			a.pause(ctx, w.calm, w.longestHold(a.random))
			m.story.note("%s goes", a.name)
			err = m.leave(ctx, a, member, v, last)
		}
		switch {
		case m.isOver():
			return
		case err != nil:
			m.story.note("%s: %v", a.name, err)
			if last && ctx.Err() == nil && !errors.Is(err, framework.ErrConnectionLoss) &&
				!errors.Is(err, barrier.ErrSessionEnded) { // the end of an earlier session
				w.violate("%s: it fails though all is well: %v", a.name, err)
			}
		case last:
			m.hadRound(a)
		}
		if a.random.IntN(8) == 0 { // a new member comes
			member, before = barrier.NewDistributedDoubleBarrier(a.process.client, m.resource.path, m.members), nil
		}
		a.pause(ctx, w.calm, 4*time.Second)
	}
}

func (m *meeting) enter(
	ctx context.Context, a *actor, member *barrier.DistributedDoubleBarrier, before *visit, last bool,
) (*visit, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if last {
		go func() {
			select {
			case <-m.over:
				cancel()
			case <-ctx.Done():
			}
		}()
	} else if a.random.IntN(3) == 0 {
		timer := time.AfterFunc(a.within(20*time.Second), cancel)
		defer timer.Stop()
	}
	a.waiting.Store(true)
	defer a.waiting.Store(false)
	v := &visit{actor: a, called: time.Now()}
	if err := member.Enter(ctx); err != nil {
		return nil, err
	}
	m.entered(v, before)
	return v, nil
}

func (m *meeting) leave(
	ctx context.Context, a *actor, member *barrier.DistributedDoubleBarrier, v *visit, last bool,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !last && a.random.IntN(4) == 0 {
		timer := time.AfterFunc(a.within(10*time.Second), cancel)
		defer timer.Stop()
	}
	a.waiting.Store(true)
	defer a.waiting.Store(false)
	if err := member.Leave(ctx); err != nil {
		return err
	}
	m.left(v)
	return nil
}

func (m *meeting) isOver() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// hadRound records that a member had a round without faults.
func (m *meeting) hadRound(a *actor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rounds[a] = true
	if m.isOver() || len(m.rounds) < len(m.world.slots) {
		return
	}
	close(m.over)
}

// observe records the decisions of the servers since its last call.
func (m *meeting) observe(leader *curatortest.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.present()
	born, ended := m.children.update(leader)
	now := m.present()
	// A member may have come before another one went: both were there for a moment that no call of observe has seen.
	met := len(before) + countMembers(born)
	for _, n := range born {
		m.story.note("born %s of session %#x", n.name, n.owner)
		if n.name == readyNode {
			m.opened(&opening{ready: n, members: now}, max(met, len(now)))
		}
	}
	if met >= m.members {
		m.enough = time.Now()
	}
	if o := m.newest(); o != nil && o.ready.isThere() && len(now) == 0 && o.deserted.IsZero() {
		o.deserted = time.Now()
	}
	for _, n := range ended {
		n.withSession = n.owner != 0 && m.world.hasEnded(n.owner)
		m.story.note("gone %s of session %#x", n.name, n.owner)
	}
}

func countMembers(nodes []*node) (n int) {
	for _, one := range nodes {
		if one.name != readyNode {
			n++
		}
	}
	return n
}

// present returns the nodes of members.
func (m *meeting) present() (members []*node) {
	for _, n := range m.children.nodes {
		if n.name != readyNode {
			members = append(members, n)
		}
	}
	return members
}

func (m *meeting) newest() *opening {
	if len(m.openings) == 0 {
		return nil
	}
	return m.openings[len(m.openings)-1]
}

// violate reports a violation with the story of the barrier.
func (m *meeting) violate(format string, args ...any) {
	m.world.violate(format+"\n%s", append(args, m.story.last())...)
}

// opened judges an opening: at one moment since the opening before there were enough members.
func (m *meeting) opened(o *opening, present int) {
	last := m.newest()
	m.story.note("it opens with %d members", present)
	m.world.report.count("rounds of a barrier")
	if present < m.members && (m.enough.IsZero() || last != nil && m.enough.Before(last.ready.ended)) {
		m.violate("%s opens for %d with %d members", m.resource.path, m.members, present)
	}
	m.openings = append(m.openings, o)
}

// entered judges a member whose Enter has returned.
func (m *meeting) entered(v, before *visit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.actor.process.dead.Load() {
		return
	}
	m.story.note("%s is in", v.actor.name)
	m.world.report.count("members that are in")
	for _, o := range m.openings {
		if o.ready.isThere() || !o.ready.ended.Before(v.called) {
			v.openings = append(v.openings, o)
		}
	}
	if len(v.openings) == 0 {
		m.violate("%s is in %s, which was not open since it came", v.actor.name, m.resource.path)
		return
	}
	v.node = newestNode(m.sorted(), func(n *node) bool { return v.actor.process.had(n.owner) })
	if len(v.openings) > 1 {
		return
	}
	o := v.openings[0]
	if before != nil && before.left && before.node != nil && slices.Contains(before.openings, o) &&
		len(before.openings) == 1 && !m.isTaken(before.node) {
		m.violate("%s is in for the second time in the same round of %s", v.actor.name, m.resource.path)
	}
	if !o.deserted.IsZero() && v.called.After(o.deserted) {
		m.violate("%s is in by what others have left in %s", v.actor.name, m.resource.path)
	}
}

// sorted returns the nodes of members in the order of their births.
func (m *meeting) sorted() []*node {
	members := m.present()
	slices.SortFunc(members, byBirth)
	return members
}

// isTaken reports whether the node of a member was ended by others, or with its session.
func (m *meeting) isTaken(n *node) bool {
	return n.withSession || m.world.judge.wasTakenSince(m.resource, n.path, n.born)
}

// left judges a member whose Leave has returned: all members that were there when the round began have left. A member
// whose node is gone with its session waits for the members that it has seen: it may not have seen later ones.
func (m *meeting) left(v *visit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.left = true
	m.story.note("%s is out", v.actor.name)
	if v.actor.process.dead.Load() || len(v.openings) != 1 {
		return
	}
	lostLock := v.node == nil || m.isTaken(v.node)
	var in []string
	for _, n := range v.openings[0].members {
		if n.isThere() && (!lostLock || n.born.Before(v.called)) {
			in = append(in, fmt.Sprintf("%s of session %#x", n.name, n.owner))
		}
	}
	if len(in) > 0 {
		m.violate("%s is out of %s, and others are still in: %v", v.actor.name, m.resource.path, in)
	}
}
