package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// Size of the storm.
const (
	stormClients = 16
	stormLocks   = 8
	stormSession = time.Second
)

// stormDuration gives how long the storm is, and how many faults it has at least.
func stormDuration() (d time.Duration, faults int) {
	if testenv.Real() {
		return 30 * time.Second, 100
	}
	return 6 * time.Second, 15
}

// TestMutexStorm has clients contend for locks while connections are cut, sessions killed and networks frozen. The
// history must be one of locks, and what the locks guard must be exact.
func TestMutexStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CURATOR_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("CURATOR_SEED=%d", seed)
	duration, faults := stormDuration()
	ctx, cancel := context.WithTimeout(context.Background(), duration+time.Minute)
	defer cancel()
	working, stop := context.WithTimeout(ctx, duration)
	defer stop()

	s := newStorm(t)
	var workers, disturber sync.WaitGroup
	for i := range s.clients {
		workers.Go(func() { s.work(working, ctx, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	injected := 0
	disturber.Go(func() { injected = s.disturb(working, rand.New(rand.NewPCG(seed, 1<<32))) })
	disturber.Wait()
	workers.Wait()

	for i, guard := range s.guards {
		if guard.value != guard.accepted {
			t.Errorf("lock %d: counter %d after %d writes", i, guard.value, guard.accepted)
		}
		grants := 0
		for _, op := range s.history[i] {
			if op.Input.(lockInput).acquire {
				grants++
			}
		}
		t.Logf("lock %d: %d grants, %d writes, %d late ones refused", i, grants, guard.accepted, guard.refused)
		if result := porcupine.CheckOperationsTimeout(lockModel, s.history[i], time.Minute); result != porcupine.Ok {
			t.Errorf("lock %d: history of %d operations is %v", i, len(s.history[i]), result)
		}
	}
	t.Logf("%d faults", injected)
	if injected < faults {
		t.Errorf("only %d faults", injected)
	}
	testenv.Eventually(t, func() bool { return s.nodes(ctx) == 0 }, "no node is left")
}

// storm is the scene: clients, each behind a proxy of its own, and what the locks guard.
type storm struct {
	t       *testing.T
	chroot  string
	clients []*stormClient
	guards  [stormLocks]*guarded

	mu      sync.Mutex
	history [stormLocks][]porcupine.Operation
}

type stormClient struct {
	*framework.Client
	proxy *curatortest.Proxy

	mu      sync.Mutex
	faulted time.Time // the last time something was done to its session
}

// guarded is a resource that refuses holders with a token that is not the newest.
type guarded struct {
	mu                       sync.Mutex
	newest                   int64
	value, accepted, refused int
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{t: t, chroot: testenv.Chroot(t)}
	for i := range s.guards {
		s.guards[i] = &guarded{}
	}
	for range stormClients {
		proxy, connect := newProxy(t, s.chroot)
		s.clients = append(s.clients, &stormClient{proxy: proxy, Client: newClient(t, connect,
			framework.WithSessionTimeout(stormSession),
			framework.WithConnectionTimeout(2*time.Second),
			framework.WithRetryPolicy(retry.NTimes(10, 100*time.Millisecond)),
		)})
	}
	return s
}

func (s *storm) lock(c *stormClient, i int) *locks.InterProcessMutex {
	return locks.NewInterProcessMutex(c.Client, fmt.Sprintf("/locks/%d", i))
}

// work acquires one lock after the other until working ends.
func (s *storm) work(working, ctx context.Context, id int, random *rand.Rand) {
	c := s.clients[id]
	for working.Err() == nil {
		i := random.IntN(stormLocks)
		called := time.Now()
		hold, err := s.lock(c, i).Acquire(working)
		if err != nil {
			continue // whatever happened: nothing was granted
		}
		granted := time.Now()
		s.record(i, id, lockInput{acquire: true, token: hold.Token()}, called, granted)
		value, ok := s.guards[i].read(hold.Token())
		select { // some hold it long enough for something to happen
		case <-hold.Context().Done():
		case <-working.Done():
		case <-time.After(time.Duration(random.IntN(30)) * time.Millisecond):
		}
		if ok {
			s.guards[i].write(hold.Token(), value+1)
		}
		s.letGo(ctx, c, i, id, hold, granted)
	}
}

// letGo releases, and notes from when to when the lock may have become free: with a fault, from then on.
func (s *storm) letGo(ctx context.Context, c *stormClient, i, id int, hold *locks.Hold, granted time.Time) {
	released := time.Now()
	err := hold.Release(ctx)
	done := time.Now()
	c.mu.Lock()
	faulted := c.faulted
	c.mu.Unlock()
	// A fault shortly before the grant may show only later: the kill of a session that the client has not heard of.
	if faulted.After(granted.Add(-2 * stormSession)) {
		released = granted
	}
	if err != nil { // it goes on in the background, at the longest until the session ends
		done = time.Now().Add(time.Hour)
	}
	s.record(i, id, lockInput{token: hold.Token()}, released, done)
}

func (s *storm) record(lock, client int, in lockInput, from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history[lock] = append(s.history[lock], porcupine.Operation{
		ClientId: client, Input: in, Call: from.UnixNano(), Return: to.UnixNano(),
	})
}

// disturb does something to somebody every now and then.
func (s *storm) disturb(working context.Context, random *rand.Rand) (faults int) {
	var thaws sync.WaitGroup
	defer thaws.Wait()
	for {
		select {
		case <-working.Done():
			return faults
		case <-time.After(time.Duration(100+random.IntN(200)) * time.Millisecond):
		}
		c := s.clients[random.IntN(len(s.clients))]
		c.mu.Lock()
		c.faulted = time.Now()
		c.mu.Unlock()
		faults++
		switch random.IntN(3) {
		case 0:
			c.proxy.Faults().CutAll()
		case 1:
			ask, cancel := context.WithTimeout(working, time.Second)
			if err := curatortest.ExpireSession(ask, testenv.Addr(s.t), c.SessionID()); err != nil {
				faults-- // it was gone already
			}
			cancel()
		case 2:
			thaw := c.proxy.Faults().Freeze()
			thaws.Go(func() {
				select {
				case <-time.After(stormSession * 3 / 2):
				case <-working.Done():
				}
				c.mu.Lock()
				c.faulted = time.Now()
				c.mu.Unlock()
				thaw()
			})
		}
	}
}

func (s *storm) nodes(ctx context.Context) (n int) {
	for i := range stormLocks {
		nodes, err := s.lock(s.clients[0], i).ParticipantNodes(ctx)
		if err != nil && !errors.Is(err, framework.ErrConnectionLoss) {
			s.t.Error(err)
		}
		n += len(nodes)
	}
	return n
}

// read returns the value, unless a newer holder was seen. From now on older ones are refused.
func (g *guarded) read(token int64) (value int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.newest {
		g.refused++
		return 0, false
	}
	g.newest = token
	return g.value, true
}

// write takes the value of a holder, unless a newer one was seen.
func (g *guarded) write(token int64, value int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.newest {
		g.refused++
		return
	}
	g.value = value
	g.accepted++
}

// lockInput is an operation on a lock: its grant to, or its release by, the holder with this token.
type lockInput struct {
	acquire bool
	token   int64
}

// lockModel is a lock: free, or held with a token that is larger than all before.
var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(lockState), input.(lockInput)
		if in.acquire {
			return !s.held && in.token > s.token, lockState{held: true, token: in.token}
		}
		return s.held && in.token == s.token, lockState{token: s.token}
	},
}

type lockState struct {
	held  bool
	token int64
}
