package locks

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

var errNotSeen = errors.New("locks: not looked yet")

// lookout counts the leases of a semaphore that are free. It looks whenever the line for the turn is listed, in the same round
// trip and behind that list: if the turn is ours by then, nobody adds a lease after the look.
type lookout struct {
	semaphore *InterProcessSemaphoreV2
	wanted    int // leases
	lists     int
	last      *builders.Future[*zk.Stat]
	seen      bool
	left      int // so many are free beside the wanted ones, or more; below 0, those are not
}

// out looks. Where others were before us the last time, the first look is spared: it would not be the last.
func (l *lookout) out(flight context.Context) {
	if l.lists++; l.lists == 1 && l.semaphore.crowded.Load() {
		return
	}
	if l.last != nil {
		_, _ = l.last.Wait(flight) // it was answered with the list before
	}
	l.look(flight)
}

func (l *lookout) look(ctx context.Context) {
	looked := l.semaphore.client.CheckExists().Submit(ctx, l.semaphore.leases.Path)
	l.last, l.seen = &looked, false
}

// lined drops the first look if others are ahead: there will be another, and thousands may wait for it.
func (l *lookout) lined(ahead int) {
	if ahead > 0 {
		l.last = nil
	}
}

// inherit counts when the turn was given on to us. If that does not tell that there is a lease for us, it looks, in the
// flight of the watch that has told of the turn: a server that we come to later may not have seen that yet. The turn is
// ours if there are leases enough: the transaction that takes them fails without our node. Who has to wait for others needs
// the line to show that node.
func (l *lookout) inherit(flight context.Context, before, own string) bool {
	l.lists++
	if _, fixed := l.semaphore.most.(fixedCount); fixed && l.wanted == 1 && round(before) == round(own) {
		l.seen, l.left = true, behind(own)
		return true
	}
	l.look(flight)
	return l.see(flight) == nil && l.left >= 0
}

// see takes what the last look has seen.
func (l *lookout) see(ctx context.Context) error {
	if l.last == nil {
		return errNotSeen
	}
	stat, err := l.last.Wait(ctx)
	switch {
	case err != nil:
		return err
	case stat == nil:
		return zk.ErrNoNode
	}
	l.count(int(stat.NumChildren))
	return nil
}

func (l *lookout) count(taken int) { l.seen, l.left = true, l.semaphore.most.Count()-taken-l.wanted }

// enough reports whether the wanted leases are free. If there is no node for the leases yet, it is created.
func (l *lookout) enough(ctx context.Context, wait time.Duration) (bool, error) {
	s := l.semaphore
	s.crowded.Store(l.lists > 1)
	for !l.seen && l.see(ctx) != nil {
		children, err := s.leases.List(ctx, wait)
		switch {
		case err == nil:
			l.count(len(children))
		case errors.Is(err, zk.ErrNoNode):
			if err := s.makeLeases(ctx); err != nil {
				return false, err
			}
		default:
			return false, err
		}
	}
	return l.left >= 0, nil
}

// mayTell reports whether a lease is left for each of those behind a turn who are to do without a look.
func (l *lookout) mayTell(turn string) bool { return l.left >= behind(turn) }

// turnsOfALook is for how many turns, one behind the other, a look may be enough: see handover.md. All processes have to agree
// on it.
const turnsOfALook = 3

// round is the same for turns that share a look.
func round(turn string) uint32 { return turnNumber(turn) / turnsOfALook }

// behind returns how many of its round may come behind a turn.
func behind(turn string) int { return turnsOfALook - 1 - int(turnNumber(turn)%turnsOfALook) }

func turnNumber(turn string) uint32 {
	n, _ := lineup.Sequence(turn, lockName)
	return uint32(n)
}
