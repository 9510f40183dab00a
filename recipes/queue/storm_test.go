package queue_test

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

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// stormSize gives how many items there are, and how many faults while they are put and consumed.
func stormSize() (items, faults int) {
	switch {
	case os.Getenv("CURATOR_TEST_SIZE") == "long":
		return 50_000, 100
	case testenv.Real():
		return 6000, 12
	}
	return 3000, 6
}

// TestQueueStorm has 4 clients put and 4 consume while sessions end and connections are cut. With a lock path nothing is
// lost, without nothing is consumed twice and all that is lost is told.
func TestQueueStorm(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("CURATOR_SEED"); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			must(t, err)
			seed = n
		}
		t.Logf("CURATOR_SEED=%d", seed)
		_, err := mode(builder(t, nil, nil)).ErrorMode(queue.RequeueOnError).BuildQueue()
		s := &storm{t: t, mode: mode, lossless: err == nil, chroot: testenv.Chroot(t), got: map[string][]delivered{}}
		s.run(rand.New(rand.NewPCG(seed, 0)))
	})
}

const stormSides = 4

type storm struct {
	t        *testing.T
	mode     modifier
	lossless bool
	chroot   string

	mu       sync.Mutex
	consumed int
	got      map[string][]delivered
	unknown  map[string]bool // told as of an outcome that is not known
	faults   int
}

// delivered is an item that a consumer was given.
type delivered struct {
	consumer int
	node     string
}

func (s *storm) run(random *rand.Rand) {
	t := s.t
	items, faults := stormSize()
	s.unknown = make(map[string]bool)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(items)*20*time.Millisecond)
	defer cancel()
	var clients []*framework.Client
	var proxies []*curatortest.Proxy
	client := func() *framework.Client {
		proxy, connect := newProxy(t, s.chroot)
		c := newClient(t, connect)
		clients, proxies = append(clients, c), append(proxies, proxy)
		return c
	}
	var consumers, producers []*queue.DistributedQueue[string]
	for i := range stormSides {
		q := built(s.mode(queue.NewBuilder(client(), s.consumer(i), queue.String{}, queuePath)).OnError(s.tell).BuildQueue())
		must(t, q.Start())
		consumers = append(consumers, q)
		p := built(s.mode(queue.NewBuilder(client(), nil, queue.String{}, queuePath)).BuildQueue())
		must(t, p.Start())
		p.PutListeners().AddListener(s.put)
		producers = append(producers, p)
	}
	var putting sync.WaitGroup
	for i, p := range producers {
		putting.Go(func() {
			for n := range items / stormSides {
				if err := p.Put(ctx, fmt.Sprintf("%d %06d", i, n)); err != nil {
					t.Error(err)
					return
				}
			}
			_ = p.FlushPuts(ctx) // the listener is told
		})
	}
	// A fault each time that there is some progress.
	for fault := range faults {
		if !s.await(ctx, items*(fault+1)/(faults+2)) {
			break
		}
		i := random.IntN(len(clients))
		if random.IntN(3) == 0 {
			proxies[i].Faults().CutAll()
		} else if err := curatortest.ExpireSession(ctx, testenv.Addr(t), clients[i].SessionID()); err != nil {
			continue // it was gone already
		}
		s.faults++
	}
	putting.Wait()
	awaitNothing(t, testenv.Addr(t)+s.chroot)
	for _, q := range append(consumers, producers...) {
		if err := q.Close(); err != nil && !errors.Is(err, queue.ErrUncertain) {
			t.Errorf("close: %v", err)
		}
	}
	s.judge(items)
}

func (s *storm) consumer(i int) queue.Consumer[string] {
	return func(ctx context.Context, item string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.consumed++
		s.got[item] = append(s.got[item], delivered{i, queue.InfoOf(ctx).Path})
		return nil
	}
}

func (s *storm) tell(_ context.Context, err error) {
	var item *queue.ItemError
	if !errors.Is(err, queue.ErrUncertain) || !errors.As(err, &item) || len(item.Data) < 14 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[string(item.Data[9:len(item.Data)-1])] = true
}

func (s *storm) put(_ context.Context, ev queue.PutEvent[string]) {
	if ev.Err == nil {
		return
	}
	if !errors.Is(ev.Err, queue.ErrUncertain) || s.lossless {
		s.t.Errorf("put of %v: %v", ev.Items, ev.Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[ev.Items[0]] = true
}

// await waits until so many were consumed, or told of.
func (s *storm) await(ctx context.Context, n int) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		enough := s.consumed+len(s.unknown) >= n
		s.mu.Unlock()
		if enough {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (s *storm) judge(items int) {
	t := s.t
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, twice := 0, 0
	for p := range stormSides {
		var last string // the first node of the item before
		for n := range items / stormSides {
			item := fmt.Sprintf("%d %06d", p, n)
			got := s.got[item]
			if len(got) == 0 {
				lost++
				if s.lossless || !s.unknown[item] {
					t.Errorf("%q is lost", item)
				}
				continue
			}
			if len(got) > 1 {
				twice++
				if !s.lossless {
					t.Errorf("%q is consumed %d times: %v", item, len(got), got)
				}
			}
			first := got[0].node
			for _, d := range got {
				first = min(first, d.node)
			}
			if first <= last {
				t.Errorf("%q is put in %s, behind %s", item, first, last)
			}
			last = first
		}
	}
	t.Logf("%d items, %d faults, %d lost, %d twice", items, s.faults, lost, twice)
	_, faults := stormSize()
	if s.faults < faults/2 {
		t.Errorf("only %d faults", s.faults)
	}
}
