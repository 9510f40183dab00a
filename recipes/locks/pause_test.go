package locks_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// duel is a holder whose connection freezes, and a waiter behind it.
type duel struct {
	*chaos.Test
	holder, waiter *framework.Client
	freeze         func() (thaw func())
	missed         func(from, to time.Time) time.Duration // for how long nothing happened in time

	lost, refused int // of holders, and of their late writes
}

const duelSession = time.Second

// TestFrozenHolderLosesHoldBeforeNextGrant freezes the connection of a holder for half to three times its
// session timeout. If its hold is lost, it ends before the next one has the lock, by the clock of both. A holder that
// does not care, and writes, is refused: by its token.
//
// In memory, time is that of a bubble, and what happens at all happens in time.
func TestFrozenHolderLosesHoldBeforeNextGrant(t *testing.T) {
	t.Parallel()
	if testenv.Real() {
		fightOnSockets(t)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		servers := curatortest.NewClusterT(t, 2, curatortest.WithoutPort()).Servers()
		client := func(i int) *framework.Client {
			return newClient(t, servers[i].ConnectString(),
				framework.WithSessionTimeout(duelSession), framework.WithDialer(servers[i].DialContext))
		}
		d := &duel{
			Test:   chaos.New(t),
			holder: client(0), waiter: client(1),
			freeze: servers[0].Faults().Freeze,
			missed: func(from, to time.Time) time.Duration { return 0 },
		}
		most := testenv.Size(50, 0, 500)
		rounds := d.fight(0, most, most)
		t.Logf("%d rounds, %d lost, %d late writes refused", rounds, d.lost, d.refused)
	})
}

// fightOnSockets has many duels at once: they take their time.
func fightOnSockets(t *testing.T) {
	t.Helper()
	const duels = 10
	all, pulse := chaos.New(t), chaos.NewPulse()
	defer pulse.Stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	rounds, lost, refused := 0, 0, 0
	for i := range duels {
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		opts := []framework.Option{
			framework.WithSessionTimeout(duelSession), framework.WithRetryPolicy(retry.Forever(50 * time.Millisecond)),
		}
		d := &duel{
			Test:   all,
			holder: newClient(t, connect, opts...), waiter: newClient(t, testenv.Addr(t)+chroot, opts...),
			freeze: proxy.Faults().Freeze,
			missed: pulse.Missed,
		}
		wg.Go(func() {
			n := d.fight(i, testenv.Size(0, 1, 50), 1)
			mu.Lock()
			defer mu.Unlock()
			rounds, lost, refused = rounds+n, lost+d.lost, refused+d.refused
		})
	}
	wg.Wait()
	t.Logf("%d rounds, %d lost, %d late writes refused", rounds, lost, refused)
}

// fight has so many rounds at least, and until so many holds were lost. It returns how many there were.
func (d *duel) fight(stream, least, losses int) (n int) {
	random := d.Random(stream)
	kinds := slices.Sorted(maps.Keys(everyLock))
	for ; n < least || d.lost < losses; n++ {
		kind := kinds[random.IntN(len(kinds))]
		early := time.Duration(random.Int64N(int64(duelSession / 2)))
		pause := duelSession/2 + time.Duration(random.Int64N(int64(duelSession*5/2)))
		d.Note("the holder of a %s is frozen after %v for %v", kind, early, pause)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := d.round(ctx, everyLock[kind], early, pause)
		cancel()
		if err != nil {
			d.Errorf("%v", err)
			break
		}
	}
	return n
}

// round is one freeze, a while after the lock was acquired.
func (d *duel) round(
	ctx context.Context, lock func(*framework.Client) locks.InterProcessLock, early, pause time.Duration,
) error {
	var guarded chaos.Guarded
	hold, err := lock(d.holder).Acquire(ctx)
	if err != nil {
		return err
	}
	value, _ := guarded.Read(hold.Token())
	ended := make(chan time.Time, 1)
	context.AfterFunc(hold.Context(), func() { ended <- time.Now() })
	granted, failed := make(chan time.Time, 1), make(chan error, 1)
	go func() {
		next, err := lock(d.waiter).Acquire(ctx)
		if err != nil {
			failed <- err
			return
		}
		granted <- time.Now()
		if value, ok := guarded.Read(next.Token()); !ok || !guarded.Write(next.Token(), value+1) {
			d.Errorf("the next is refused")
		}
		failed <- next.Release(ctx)
	}()
	time.Sleep(early)
	frozen := time.Now()
	thaw := d.freeze()
	time.Sleep(pause)
	thaw()
	if err := d.holder.BlockUntilConnected(ctx); err != nil {
		return err
	}
	_ = hold.Release(ctx) // if it is not lost
	if err := <-failed; err != nil {
		return err
	}
	lost, next := <-ended, <-granted
	if early := lost.Sub(next); early > d.missed(frozen, lost) {
		d.Errorf("the next had the lock %v before the holder lost it", early)
	}
	if !errors.Is(context.Cause(hold.Context()), locks.ErrLockLost) {
		return nil
	}
	d.lost++
	if guarded.Write(hold.Token(), value+1) {
		d.Errorf("the late write is accepted")
	} else {
		d.refused++
	}
	return nil
}
