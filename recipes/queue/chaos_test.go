package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/queue"
)

// TestQueueChaos has 4 clients put and 4 consume while sessions end and connections are cut. With a lock path nothing
// is lost, without nothing is consumed twice and all that is lost is reported.
func TestQueueChaos(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		_, err := mode(builder(t, nil, nil)).ErrorMode(queue.RequeueOnError).BuildQueue()
		s := &queueChaos{
			Test: chaos.New(t), t: t, mode: mode, lossless: err == nil, chroot: testenv.Chroot(t),
			items: testenv.Size(3000, 6000, 50_000), want: testenv.Size(6, 12, 100),
			got: make(map[string][]delivered), unknown: make(map[string]bool),
		}
		s.run()
	})
}

const chaosSides = 4

type queueChaos struct {
	*chaos.Test
	t        *testing.T
	mode     modifier
	lossless bool
	chroot   string
	items    int
	want     int // faults

	mu      sync.Mutex
	settled int // items in got or unknown
	got     map[string][]delivered
	unknown map[string]bool // reported as of an outcome that is not known
}

// delivered is an item that a consumer was given.
type delivered struct {
	consumer int
	node     string
}

func (s *queueChaos) run() {
	t := s.t
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(s.items)*100*time.Millisecond)
	defer cancel()
	var victims []*chaos.Victim
	client := func(name string) *framework.Client {
		proxy, connect := newProxy(t, s.chroot)
		c := newClient(t, connect)
		victims = append(victims, &chaos.Victim{Name: name, Proxy: proxy, Session: c.SessionID})
		return c
	}
	var consumers, producers []*queue.DistributedQueue[string]
	for i := range chaosSides {
		q := built(s.mode(queue.NewBuilder(client(fmt.Sprint("consumer ", i)), s.consumer(i), codec.Text{},
			queuePath)).OnError(s.notify).BuildQueue())
		must(t, q.Start())
		consumers = append(consumers, q)
		p := built(s.mode(queue.NewBuilder(client(fmt.Sprint("producer ", i)), nil, codec.Text{}, queuePath)).BuildQueue())
		must(t, p.Start())
		p.AddPutListener(s.put)
		producers = append(producers, p)
	}
	var putting sync.WaitGroup
	for i, p := range producers {
		putting.Go(func() {
			for n := range s.items / chaosSides {
				if err := p.Put(ctx, fmt.Sprintf("%d %06d", i, n)); err != nil {
					t.Error(err)
					return
				}
			}
			_ = p.FlushPuts(ctx) // the listener gets the error
		})
	}
	faults := s.Disturb(ctx, chaos.Pace{}, func(n int) bool {
		// A fault each time that there is some progress.
		return n == s.want || !s.await(ctx, s.items*(n+1)/(s.want+2))
	}, chaos.Cut(victims), chaos.Expire(victims, testenv.Addr(t)), chaos.Expire(victims, testenv.Addr(t)))
	putting.Wait()
	// A queue may look empty while a consumer has items that it puts back for others. So all have to be consumed first.
	s.await(ctx, s.items)
	awaitNothing(t, testenv.Addr(t)+s.chroot)
	for _, q := range append(consumers, producers...) {
		if err := q.Close(); err != nil && !errors.Is(err, queue.ErrUncertain) {
			t.Errorf("close: %v", err)
		}
	}
	s.judge(faults)
}

func (s *queueChaos) consumer(i int) queue.Consumer[string] {
	return func(ctx context.Context, item string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settle(item)
		s.got[item] = append(s.got[item], delivered{i, queue.InfoOf(ctx).Path})
		return nil
	}
}

func (s *queueChaos) notify(_ context.Context, err error) {
	var item *queue.ItemError
	if !errors.Is(err, queue.ErrUncertain) || !errors.As(err, &item) || len(item.Data) < 14 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(string(item.Data[9 : len(item.Data)-1]))
	s.unknown[string(item.Data[9:len(item.Data)-1])] = true
}

func (s *queueChaos) put(_ context.Context, ev queue.PutEvent[string]) {
	if ev.Err == nil {
		return
	}
	if !errors.Is(ev.Err, queue.ErrUncertain) || s.lossless {
		s.t.Errorf("put of %v: %v", ev.Items, ev.Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(ev.Items[0])
	s.unknown[ev.Items[0]] = true
}

// settle counts an item that is new in got and unknown. mu is held.
func (s *queueChaos) settle(item string) {
	if len(s.got[item]) == 0 && !s.unknown[item] {
		s.settled++
	}
}

// await waits until so many items were consumed, or are of an unknown outcome.
func (s *queueChaos) await(ctx context.Context, n int) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		enough := s.settled >= n
		s.mu.Unlock()
		if enough {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (s *queueChaos) judge(faults int) {
	t := s.t
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, twice := 0, 0
	for p := range chaosSides {
		var last string // the first node of the item before
		for n := range s.items / chaosSides {
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
	t.Logf("%d items, %d faults, %d lost, %d twice", s.items, faults, lost, twice)
	if faults < s.want {
		t.Errorf("only %d faults", faults)
	}
}
