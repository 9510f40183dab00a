package interop_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// witness checks the holders of a lock: a single exclusive one, or at most the limit of shared ones. A side that is
// inside for the witness also holds the lock on the server.
type witness struct {
	t    *testing.T
	most int

	mu            sync.Mutex
	alone, shared int
	inside        map[side]bool
	last          string
	handovers     int // between Go and Java
}

func (w *witness) enter(s side, alone bool) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := &w.shared
	if alone {
		count = &w.alone
	}
	*count++
	w.inside[s] = true
	if w.alone > 1 || w.alone == 1 && w.shared > 0 || w.shared > w.most {
		w.t.Errorf("inside are %d exclusive holders and %d shared ones", w.alone, w.shared)
	}
	if s.String() != w.last {
		w.last = s.String()
		w.handovers++
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*count--
		delete(w.inside, s)
	}
}

// toOutsider does something to a waiter while as many contenders are inside as may be: none comes in meanwhile, and
// they stay. At other times it is not done.
func (w *witness) toOutsider(s side, do func() (bool, error)) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside[s] || w.alone == 0 && w.shared < w.most {
		return false, nil
	}
	return do()
}

// TestGoAndJavaExcludeEachOther has two clients of Go and two of Java ask for the same, again and again. Of either,
// one loses its session when it has it, and one when others have it.
func TestGoAndJavaExcludeEachOther(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for name, tt := range map[string]struct {
		kinds []lockKind // in turn
		most  int        // how many may be inside, of those that share
	}{
		"mutex":           {kinds: []lockKind{mutex}},
		"read-write lock": {kinds: []lockKind{writeLock, readLock, downgraded}, most: 4},
		"semaphore mutex": {kinds: []lockKind{semaphoreMutex}},
		"semaphore":       {kinds: []lockKind{oneLease}, most: mostLeases},
		"multi lock":      {kinds: []lockKind{multiLock}},
		"latch":           {kinds: []lockKind{asLock(latch)}},
		"selector":        {kinds: []lockKind{asLock(selector)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contend(meetApart(t, 2), &witness{t: t, most: tt.most, inside: make(map[side]bool)}, tt.kinds)
		})
	}
}

func contend(m *meeting, w *witness, kinds []lockKind) {
	const rounds = 20
	const expireOther, expireOwn = 3, 5 // rounds in which one ends the session of another, and its own
	var all sync.WaitGroup
	begin := make(chan struct{}) // when all are there: else the first are done before the others come
	var busy atomic.Int32
	busy.Store(int32(len(m.peers)))
	for n, s := range m.peers {
		contenders := make([]*contender, len(kinds))
		for i, k := range kinds {
			contenders[i] = k.of(s)
		}
		var other *peer // of the same language, for the first of each
		if half := len(m.peers) / 2; n < half {
			other = m.peers[n+half]
		}
		all.Go(func() {
			<-begin
			for i := 0; i < rounds || busy.Load() > 0; i++ { // none leaves the others among themselves
				k := i % len(kinds)
				visit := visit{witness: w, side: s, alone: kinds[k].alone}
				switch {
				case other != nil && i == expireOwn:
					visit.outside = m.until(s, func() (bool, error) { return m.tryExpire(s) })
				case other != nil && i == expireOther && (other.language == golangPeer || kinds[k].nodes < 2):
					// A semaphore of Java 5.4.0 that waits would go on without its turn, and wait for the next in turn: if
					// that is of Java, too, it waits for the first.
					visit.inside = m.until(s, func() (bool, error) {
						return w.toOutsider(other, func() (bool, error) { return m.tryExpire(other) })
					})
				}
				if err := visit.pay(m.ctx, contenders[k]); err != nil {
					m.t.Errorf("%v: %v", s, err)
					busy.Add(-rounds) // the others need not go on for long
					return
				}
				if i == rounds-1 {
					busy.Add(-1)
				}
			}
		})
	}
	close(begin)
	all.Wait()
	if w.handovers < rounds/2 {
		m.t.Errorf("only %d hand-overs between Go and Java: they did not contend", w.handovers)
	}
	m.awaitNothing()
}

// until has something tried again and again, until it is done.
func (m *meeting) until(s side, try func() (done bool, err error)) func() error {
	return func() error {
		for {
			if done, err := try(); done || err != nil {
				return err
			}
			if err := s.look(m.ctx); err != nil {
				return err
			}
		}
	}
}

// visit is what a side does with a lock.
type visit struct {
	*witness
	side
	alone   bool
	inside  func() error // if not nil, what happens inside
	outside func() error // if not nil, what happens when it has left, for the witness, and still has the lock
}

func (v *visit) pay(ctx context.Context, c *contender) error {
	held, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	leave := v.enter(v.side, v.alone)
	for range 5 { // the others have time to come in, if they can
		err = errors.Join(err, v.look(ctx))
	}
	if v.inside != nil {
		err = errors.Join(err, v.inside())
	}
	leave()
	if v.outside != nil {
		err = errors.Join(err, v.outside())
	}
	return errors.Join(err, held.release(ctx))
}
