package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/shared"
)

// sharedNode is the node of a shared value of a world. Each write has data of its own: so the judge knows whether it
// took effect.
type sharedNode struct {
	world *world
	path  string

	mu       sync.Mutex
	versions []curatortest.Node // that the leader had, the newest last
	newSince time.Time          // when the newest was first seen
	gone     bool               // the node was deleted when the judge looked last
	had      map[string]bool    // data of versions
	refused  map[string]string  // data of writes that took no effect, and why
	copies   map[*sharedCopy]bool
}

// sharedCopy is the shared value of one actor.
type sharedCopy struct {
	node    *sharedNode
	actor   string
	process *process
	value   interface {
		VersionedValue() shared.VersionedValue[[]byte]
		Err() error
	}
	read     shared.VersionedValue[[]byte] // the last one that was read
	listened shared.VersionedValue[[]byte] // the last one that the listener got
}

// Events of shared values.
const (
	sharedWrites    = "writes of a shared value"
	sharedConflicts = "writes of a shared value that came too late"
	quietCopies     = "copies of a shared value in quiet times"
)

// sharedRecipe is a shared value with one copy in each process.
func sharedRecipe(w *world) recipe {
	s := newSharedNode(w)
	w.shared = append(w.shared, s)
	return recipe{name: "shared value", actors: []role{{"shares", s.share}}}
}

func newSharedNode(w *world) *sharedNode {
	return &sharedNode{
		world: w, path: "/shared", had: map[string]bool{}, refused: map[string]string{}, copies: map[*sharedCopy]bool{},
	}
}

// share reads and sets the value, again and again.
func (s *sharedNode) share(ctx context.Context, a *actor) {
	for turn := 1; ctx.Err() == nil; turn++ {
		last := s.world.isCalm()
		if s.turn(ctx, a, fmt.Sprintf("%s.%d", a.name, turn), last) && last {
			return
		}
		a.pause(ctx, s.world.calm, 4*time.Second)
	}
}

// turn is the life of one copy. It returns false if something has failed.
func (s *sharedNode) turn(ctx context.Context, a *actor, name string, last bool) bool {
	v := shared.NewSharedValue(a.client, s.path, []byte(name+" seed"))
	defer v.Close()
	c := &sharedCopy{node: s, actor: name, process: a.process, value: v}
	v.AddListener(func(_ context.Context, now shared.VersionedValue[[]byte]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.judgeNext(c, "its listener", c.listened, now)
		c.listened = now
	})
	if err := s.bounded(ctx, a.random, last, v.Start); err != nil {
		s.world.history.note("%s: %v", name, err)
		return false
	}
	s.open(c, true)
	defer s.open(c, false)
	all := true
	for i := range 1 + a.random.IntN(5) {
		a.pause(ctx, s.world.calm, 2*time.Second)
		s.look(c)
		all = s.set(ctx, a, c, v, fmt.Sprintf("%s %d", name, i), last) && all
	}
	if last {
		s.awaitCopy(ctx, c)
		wait(ctx, 2*settleLimit) // the others have written by then
		s.look(c)
	}
	return all
}

// bounded calls fn, which may have little time unless it is the last turn.
func (s *sharedNode) bounded(
	ctx context.Context, random *rand.Rand, last bool, fn func(ctx context.Context) error,
) error {
	if !last && random.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within(random, 5*time.Second))
		defer cancel()
	}
	return fn(ctx)
}

func (s *sharedNode) open(c *sharedCopy, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.copies[c] = true
	} else {
		delete(s.copies, c)
	}
}

// set sets the value once, mostly on the condition that it is what the copy has.
func (s *sharedNode) set(
	ctx context.Context, a *actor, c *sharedCopy, v *shared.SharedValue, data string, last bool,
) (done bool) {
	before := s.look(c)
	conditional := a.random.IntN(4) > 0
	set := true
	err := s.bounded(ctx, a.random, last, func(ctx context.Context) (err error) {
		if conditional {
			set, err = v.TrySetValue(ctx, before, []byte(data))
			return err
		}
		return v.SetValue(ctx, []byte(data))
	})
	if leader, err := s.world.cluster.Leader(); err == nil {
		s.observe(leader)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, shared.ErrUncertain):
		s.world.history.note("%s: %v", c.actor, err)
		return true
	case err != nil:
		s.world.history.note("%s: %v", c.actor, err)
		s.judgeRefused(data, err.Error())
		return errors.Is(err, framework.ErrConnectionLoss)
	case !set:
		s.world.report.count(sharedConflicts)
		s.judgeRefused(data, "another one was faster")
		return true
	}
	s.world.report.count(sharedWrites)
	s.judgeSet(c, conditional, before, data)
	return true
}

// look reads the copy.
func (s *sharedNode) look(c *sharedCopy) shared.VersionedValue[[]byte] {
	now := c.value.VersionedValue()
	leader, err := s.world.cluster.Leader()
	if err == nil {
		s.observe(leader)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judgeNext(c, "its copy", c.read, now)
	if err == nil {
		s.judgeOrigin(c, now)
	}
	c.read = now
	return now
}

// judgeNext compares a value with the one before it: a copy does not go back.
func (s *sharedNode) judgeNext(c *sharedCopy, of string, before, now shared.VersionedValue[[]byte]) {
	if now.Zxid < before.Zxid {
		s.world.violate("%s: %s goes back from %q at %#x to %q at %#x", c.actor, of, before.Value, before.Zxid, now.Value,
			now.Zxid)
	}
}

// judgeOrigin compares a value with the one that the servers had at that time.
func (s *sharedNode) judgeOrigin(c *sharedCopy, now shared.VersionedValue[[]byte]) {
	for _, n := range s.versions {
		if n.Stat.Mzxid == now.Zxid && string(n.Data) != string(now.Value) {
			s.world.violate("%s has %q at %#x, and the servers had %q", c.actor, now.Value, now.Zxid, n.Data)
		}
	}
	if len(s.versions) > 0 && now.Zxid > s.newest().Stat.Mzxid {
		s.world.violate("%s has %q at %#x, which is newer than the servers' %q", c.actor, now.Value, now.Zxid,
			s.newest().Data)
	}
}

// judgeRefused judges a write whose error says that it took no effect.
func (s *sharedNode) judgeRefused(data, why string) {
	s.refused[data] = why
	if s.had[data] {
		s.world.violate("%q was written, and the call returned: %s", data, why)
	}
}

// judgeSet judges a write that has succeeded: the servers have had its data. If it depends on a value, it is the next
// version behind it: nothing was written to the node between the two. A node that was made anew since, and had the
// version of the value then, is taken for the old one, as docs/values.md says.
func (s *sharedNode) judgeSet(c *sharedCopy, conditional bool, before shared.VersionedValue[[]byte], data string) {
	if !s.had[data] {
		if s.sawAllSince(before) {
			s.world.violate("%s has set %q, and the servers never had it", c.actor, data)
		}
		return
	}
	if !conditional {
		return
	}
	set := s.versions[slices.IndexFunc(s.versions, func(n curatortest.Node) bool { return string(n.Data) == data })].Stat
	if set.Version != before.Version+1 {
		s.world.violate("%s has set %q as version %d behind %q, version %d", c.actor, data, set.Version, before.Value,
			before.Version)
	}
}

// sawAllSince reports whether the judge has seen all that was written to the node behind a value. It looks from time to
// time: of writes that were held, and take effect at one moment, it sees the last.
func (s *sharedNode) sawAllSince(before shared.VersionedValue[[]byte]) bool {
	at := slices.IndexFunc(s.versions, func(n curatortest.Node) bool { return n.Stat.Mzxid == before.Zxid })
	if at < 0 || s.gone {
		return false
	}
	for i, n := range s.versions[at+1:] {
		last := s.versions[at+i].Stat
		if n.Stat.Czxid != last.Czxid || n.Stat.Version != last.Version+1 {
			return false
		}
	}
	return true
}

// newest returns the newest node that the leader had.
func (s *sharedNode) newest() curatortest.Node { return s.versions[len(s.versions)-1] }

// observe judges the node of the leader.
func (s *sharedNode) observe(leader *curatortest.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, ok := leader.Node(s.path)
	s.gone = !ok
	if !ok {
		return
	}
	if len(s.versions) == 0 || s.newest().Stat.Mzxid != node.Stat.Mzxid {
		s.versions = append(s.versions, node)
		s.newSince = time.Now()
		data := string(node.Data)
		s.had[data] = true
		if why, ok := s.refused[data]; ok {
			s.world.violate("%q is written, and the call has returned: %s", data, why)
		}
	}
	if !s.world.isQuiet(settleLimit) || time.Since(s.newSince) < settleLimit {
		return
	}
	for c := range s.copies {
		s.judgeSettled(c)
	}
}

// judgeSettled compares a copy with the node, in a quiet time.
func (s *sharedNode) judgeSettled(c *sharedCopy) {
	p := c.process
	if p.dead.Load() || p.left.Load() || p.wasSuspended(time.Now().Add(-settleLimit)) || c.value.Err() != nil {
		return
	}
	s.world.report.count(quietCopies)
	if now := c.value.VersionedValue(); now.Zxid != s.newest().Stat.Mzxid {
		s.world.violate("%s has %q at %#x, and the servers have %q at %#x", c.actor, now.Value, now.Zxid, s.newest().Data,
			s.newest().Stat.Mzxid)
	}
}

// awaitCopy waits until the copy is what the servers have.
func (s *sharedNode) awaitCopy(ctx context.Context, c *sharedCopy) {
	for deadline := time.Now().Add(2 * time.Minute); ctx.Err() == nil; wait(ctx, 100*time.Millisecond) {
		now := s.look(c)
		leader, err := s.world.cluster.Leader()
		if err != nil {
			continue
		}
		node, ok := leader.Node(s.path)
		if ok && node.Stat.Mzxid == now.Zxid {
			return
		}
		if time.Now().After(deadline) {
			s.world.violate("%s has %q, and the servers have %q: error %v", c.actor, now.Value, node.Data, c.value.Err())
			return
		}
	}
}
