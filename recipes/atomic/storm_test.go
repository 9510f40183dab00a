package atomic_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

var seeds = flag.Uint64("seeds", 4, "number of seeds with random faults, from CURATOR_SEED on")

const (
	stormCallers    = 100 // of one client
	stormCompetitor = 5   // callers of each value of another client
)

// TestNumberOfManyCallersThatLeaveAtAnyTime has many goroutines of one client add to a number until their contexts end,
// while another client adds too, and random faults hit both. Each change has a part of the number for itself: those of
// the acknowledged changes do not overlap, and some of the open ones fill the gaps between them.
func TestNumberOfManyCallersThatLeaveAtAnyTime(t *testing.T) {
	t.Parallel()
	first := chaos.New(t).Seed()
	for i := range *seeds {
		seed := first + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newStorm(t, seed).run() })
		})
	}
}

// storm is a number in virtual time, and what its callers know of it.
type storm struct {
	testing.TB
	ctx     context.Context
	seed    uint64
	random  *rand.Rand
	servers []*curatortest.Server
	cluster *curatortest.Cluster
	opts    []atomic.Option
	ends    bool // sessions end
	calm    context.Context

	mu      sync.Mutex
	results []string // of all changes
	applied []share
	open    []share
}

// share is what a change has added: the number before it, and that after it.
type share struct{ from, to int64 }

func newStorm(t *testing.T, seed uint64) *storm {
	t.Helper()
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
	w := &storm{
		TB: t, ctx: t.Context(), seed: seed, random: rand.New(rand.NewPCG(seed, 0)),
		servers: cluster.Servers(), cluster: cluster, ends: seed%2 == 0,
	}
	if seed/2%2 == 0 {
		w.opts = append(w.opts, atomic.WithReceipts(receiptsPath))
	}
	if seed/4%4 == 0 {
		w.opts = append(w.opts, atomic.WithPromotedToLock(atomic.PromotedToLock{
			Path: "/lock", Timeout: time.Second, Policy: retry.NTimes(5, 10*time.Millisecond),
		}))
	}
	return w
}

func (w *storm) within(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

func (w *storm) policy(random *rand.Rand) retry.Policy {
	if random.IntN(2) == 0 {
		return retry.NTimes(random.IntN(4), 5*time.Millisecond)
	}
	return retry.Forever(5 * time.Millisecond)
}

func (w *storm) run() {
	var clients []*framework.Client
	for range 2 {
		policy := retry.NTimes(0, 0)
		if w.random.IntN(3) > 0 {
			policy = retry.NTimes(4, 20*time.Millisecond)
		}
		clients = append(clients, testclient.Connect(w, w.cluster.ConnectString(),
			framework.WithDialer(w.cluster.DialContext), framework.WithSessionTimeout(6*time.Second),
			framework.WithConnectionTimeout(3*time.Second), framework.WithRetryPolicy(policy)))
	}
	for i, server := range w.servers { // so that callers leave in the middle of a request
		server.Faults().Add(curatortest.Rule{
			Action: []curatortest.Action{curatortest.DelayRequest, curatortest.DelayReply}[w.random.IntN(2)],
			Delay:  time.Duration(1+w.random.IntN(20)) * time.Millisecond, Chance: .5, Seed: w.seed + uint64(i), MayMiss: true,
		})
	}
	calm, becalm := context.WithCancel(w.ctx)
	defer becalm()
	w.calm = calm
	var faults, callers sync.WaitGroup
	faults.Go(func() { w.disturb(clients) })
	stream := uint64(0)
	for c, client := range clients {
		values := 1 + w.random.IntN(2)
		for range values {
			n := atomic.NewDistributedAtomicLong(client, counterPath, w.policy(w.random), w.opts...)
			number := stormCallers / values
			if c > 0 {
				number = stormCompetitor
			}
			for range number {
				stream++
				random := rand.New(rand.NewPCG(w.seed, stream))
				callers.Go(func() { w.call(n, random) })
			}
		}
	}
	callers.Wait()
	becalm()
	faults.Wait()
	n := atomic.NewDistributedAtomicLong(clients[0], counterPath, retry.Forever(time.Millisecond), w.opts...)
	var last atomic.Result[int64]
	testenv.Eventually(w, func() bool {
		var err error
		last, err = n.Add(w.ctx, 1)
		w.note(last, err)
		return err == nil && last.Succeeded
	}, "the number grows when all is well")
	w.judge(last.Post)
}

// call adds some times. The context of most changes ends at a random moment.
func (w *storm) call(n *atomic.DistributedAtomicLong, random *rand.Rand) {
	for range 1 + random.IntN(6) {
		time.Sleep(w.within(random, 300*time.Millisecond))
		ctx, cancel := w.ctx, context.CancelFunc(func() {})
		switch random.IntN(4) {
		case 0:
			ctx, cancel = context.WithTimeout(ctx, w.within(random, 20*time.Millisecond))
		case 1, 2:
			ctx, cancel = context.WithTimeout(ctx, w.within(random, 2*time.Second))
		}
		r, err := n.Add(ctx, 1+random.Int64N(3))
		w.note(r, err)
		cancel()
		if random.IntN(10) == 0 {
			if err := n.Close(); err != nil {
				w.Error(err)
			}
		}
	}
}

func (w *storm) note(r atomic.Result[int64], err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results = append(w.results, fmt.Sprintf("%v %+v %v", time.Now().Format("05.000000"), r, err))
	switch {
	case isUncertain(err):
		w.open = append(w.open, share{r.Pre, r.Post})
	case err == nil && r.Succeeded:
		w.applied = append(w.applied, share{r.Pre, r.Post})
	}
}

// disturb strikes until the storm is over, and undoes what it has done.
func (w *storm) disturb(clients []*framework.Client) {
	random := rand.New(rand.NewPCG(w.seed, 1<<32))
	actions := []curatortest.Action{
		curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply,
		curatortest.DelayRequest, curatortest.DelayReply,
	}
	requests := [][]string{nil, {"setData", "multi", "create2"}, {"getData", "sync", "exists"}, {"create2"}}
	var undo []func()
	for w.calm.Err() == nil {
		server := w.servers[random.IntN(len(w.servers))]
		switch random.IntN(9) {
		case 0:
			server.Faults().CutAll()
		case 1:
			undo = append(undo, server.Faults().RefuseConnects())
		case 2:
			lagging := w.servers[random.IntN(len(w.servers))]
			if leader, err := w.cluster.Leader(); err == nil && leader != lagging {
				w.cluster.SetLag(lagging, w.within(random, 300*time.Millisecond))
			}
		case 3:
			if w.ends {
				client := clients[random.IntN(len(clients))]
				_ = w.cluster.ExpireSession(client.SessionID()) // it may have ended
			}
		case 4:
			if w.ends {
				_ = clients[random.IntN(len(clients))].Reset()
			}
		default:
			rule := server.Faults().Add(curatortest.Rule{
				Ops:    requests[random.IntN(len(requests))],
				Action: actions[random.IntN(len(actions))], Delay: w.within(random, 500*time.Millisecond),
				Skip: random.IntN(3), Count: 1 + random.IntN(2), MayMiss: true,
			})
			undo = append(undo, rule.Remove)
		}
		if len(undo) > 3 {
			undo[0]()
			undo = undo[1:]
		}
		pause := time.NewTimer(w.within(random, 60*time.Millisecond))
		select {
		case <-pause.C:
		case <-w.calm.Done():
			pause.Stop()
		}
	}
	for _, fn := range undo {
		fn()
	}
	for _, server := range w.servers {
		w.cluster.SetLag(server, 0)
	}
}

func (w *storm) judge(number int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.applied, func(a, b share) int { return cmp.Compare(a.from, b.from) })
	at := int64(0)
	for _, s := range append(slices.Clone(w.applied), share{from: number, to: number}) {
		if !w.fill(at, s.from, map[int64]bool{}) {
			w.Errorf("the number is %d: before %+v it is %d, and no open change leads there: %+v", number, s, at, w.open)
			w.Log(strings.Join(w.results, "\n"))
			for _, server := range w.servers {
				w.Log(curatortest.FormatTrace(server.Faults().Trace()))
			}
			return
		}
		at = s.to
	}
	w.Logf("%d applied, %d open, the number is %d", len(w.applied), len(w.open), number)
}

// fill reports whether some of the open changes lead from one number to another. seen has the numbers from which none
// do.
func (w *storm) fill(from, to int64, seen map[int64]bool) bool {
	if from >= to || seen[from] {
		return from == to
	}
	for _, s := range w.open {
		if s.from == from && w.fill(s.to, to, seen) {
			return true
		}
	}
	seen[from] = true
	return false
}
