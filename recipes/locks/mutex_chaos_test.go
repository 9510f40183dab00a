package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
)

// mutexes adds mutexes to a scene, and returns what acquires one of them.
func (s *scene) mutexes(n int) attempt {
	for i := range n {
		s.add(fmt.Sprintf("/locks/%d", i), 0, chaos.Lock)
	}
	return func(ctx context.Context, client *framework.Client, who int, random *rand.Rand) (*holding, error) {
		th := s.things[random.IntN(n)]
		hold, err := locks.NewInterProcessMutex(client, th.line).Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return th.holds(hold, th.held(hold, who)), nil
	}
}

// held is what a hold has of a thing that one holds at a time.
func (th *thing) held(hold *locks.Hold, who int) part {
	return part{
		thing:     th,
		nodes:     alone(hold.Path(), who),
		token:     hold.Token(),
		granted:   chaos.LockOp{Token: hold.Token()},
		givenBack: chaos.LockOp{Token: hold.Token(), Release: true},
	}
}

// TestMutexChaos has clients contend for locks while connections are cut, sessions expire and networks freeze. At most
// one holds a lock at a time, for the server, for the clients, and for what the lock guards.
func TestMutexChaos(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16)
	try := s.mutexes(8)
	s.rage(testenv.Size(
		size{duration: 4 * time.Second, faults: 10, grants: 50},
		size{duration: 12 * time.Second, faults: 30, grants: 150},
		size{duration: 2 * time.Minute, faults: 300, grants: 5000},
	), chaosPace, try, s.clientFaults()...)
	for _, th := range s.things {
		if limit := 3 * s.session; testenv.Long() && th.longest >= limit {
			s.Errorf("%s: no grant for %v", th.line, th.longest)
		}
	}
}

// A client that is cut off releases a lock whose session the server has ended. It gets no answer, so the scene does not
// know when the node went: another client may have had the lock before the release began.
func TestSceneExcusesReleaseWithoutAnswer(t *testing.T) {
	ctx := testenv.Context(t)
	s := newScene(t, 2)
	try := s.mutexes(1)
	acquire := func(who int) (h *holding, session *framework.Session, called time.Time) {
		client := s.clients[who-1]
		if err := client.BlockUntilConnected(ctx); err != nil {
			t.Fatal(err)
		}
		session, called = client.Session(), time.Now()
		h, err := try(ctx, client, who, s.Random(who))
		if err != nil {
			t.Fatal(err)
		}
		s.granted(h, who, called)
		s.begin(h)()
		return h, session, called
	}
	lost, session, called := acquire(1)
	defer s.victims[0].Proxy.Faults().Freeze()()
	s.NoteExpiry(session.ID())
	if err := curatortest.ExpireSession(ctx, testenv.Addr(t), session.ID()); err != nil {
		t.Fatal(err)
	}
	next, nextSession, nextCalled := acquire(2)
	s.letGo(ctx, next, 2, nextSession, nextCalled)
	over, cancel := context.WithCancel(ctx)
	cancel()
	s.letGo(over, lost, 1, session, called)
	s.things[0].judge(s)
}
