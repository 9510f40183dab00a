package interop_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// witness watches who is inside: one who is to be alone, or no more than most. Who is inside for the witness is so for
// the server, from before it enters until after it has left.
type witness struct {
	t    *testing.T
	most int

	mu            sync.Mutex
	alone, shared int
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
	if w.alone > 1 || w.alone == 1 && w.shared > 0 || w.shared > w.most {
		w.t.Errorf("inside are %d who are to be alone, and %d others", w.alone, w.shared)
	}
	if s.String() != w.last {
		w.last = s.String()
		w.handovers++
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*count--
	}
}

// TestGoAndJavaExcludeEachOther has two clients of Go and two of Java ask for the same, again and again.
func TestGoAndJavaExcludeEachOther(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for name, tt := range map[string]struct {
		kinds []lockKind // in turn
		most  int        // how many may be inside, of those who are not to be alone
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
			contend(meet(t, 2), &witness{t: t, most: tt.most}, tt.kinds)
		})
	}
}

func contend(m *meeting, w *witness, kinds []lockKind) {
	const rounds = 20
	var all sync.WaitGroup
	begin := make(chan struct{}) // when all are there: else the first are done before the others come
	var busy atomic.Int32
	busy.Store(int32(len(m.sides)))
	for _, s := range m.sides {
		contenders := make([]*contender, len(kinds))
		for i, k := range kinds {
			contenders[i] = s.contend(k)
		}
		all.Go(func() {
			<-begin
			for i := 0; i < rounds || busy.Load() > 0; i++ { // none leaves the others among themselves
				k := i % len(kinds)
				if err := visit(m.ctx, w, s, contenders[k], kinds[k].alone); err != nil {
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

func visit(ctx context.Context, w *witness, s side, c *contender, alone bool) error {
	held, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	leave := w.enter(s, alone)
	for range 5 { // the others have time to come in, if they can
		err = errors.Join(err, s.look(ctx))
	}
	leave()
	return errors.Join(err, held.release(ctx))
}
