package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue"
)

// TestSimpleQueueAgreesWithAModel makes random calls of several values, while the path is deleted, connections are lost
// and time passes, and compares the elements with a list.
func TestSimpleQueueAgreesWithAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newSimpleModel(t, seed)
				for range 60 {
					must(t, m.client.Sync().ForPath(t.Context(), "/")) // all events have arrived
					<-time.After(time.Microsecond)
					m.step()
				}
				m.endTake()
			})
		})
	}
}

// simpleModel is a simple queue and what is in it.
type simpleModel struct {
	*testing.T
	rand             *rand.Rand
	server           *curatortest.Server
	client, operator *framework.Client
	queues           []*queue.SimpleDistributedQueue
	elements         []string
	offered          int
	taken            chan []byte // by a Take that waits, else nil
	steps            []string
}

// newSimpleModel returns an empty queue.
func newSimpleModel(t *testing.T, seed uint64) *simpleModel {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client, operator := clientAt(t, server, ""), clientAt(t, server, "")
	return &simpleModel{
		T: t, rand: rand.New(rand.NewPCG(seed, 1)), server: server, client: client, operator: operator,
		queues: []*queue.SimpleDistributedQueue{simple(client), simple(client), simple(operator)},
	}
}

// step makes one call, or has something happen to the queue. While a Take waits, no other call removes elements.
func (m *simpleModel) step() {
	ctx, q := m.Context(), m.queues[m.rand.IntN(len(m.queues))]
	do := func(name string, fn func()) {
		m.steps = append(m.steps, name)
		fn()
	}
	remove := func(name string, call func(context.Context) ([]byte, error)) {
		if m.taken == nil {
			do(name, func() { m.want(name, call) })
		}
	}
	switch m.rand.IntN(14) {
	case 0, 1, 2:
		do("Offer", func() { m.offer(q) })
	case 3:
		do("five Offers", func() {
			for range 5 {
				m.offer(q)
			}
		})
	case 4:
		remove("Poll", q.Poll)
	case 5:
		for len(m.elements) > 1 {
			remove("Poll", q.Poll)
		}
	case 6:
		if m.taken == nil {
			do("Peek", func() {
				before := slices.Clone(m.elements)
				m.want("Peek", q.Peek)
				m.elements = before
			})
		}
	case 7:
		wait := time.Duration(1+m.rand.IntN(1500)) * time.Millisecond
		remove("PollFor", func(ctx context.Context) ([]byte, error) { return q.PollFor(ctx, wait) })
	case 8:
		if len(m.elements) > 0 {
			remove("Take", q.Take)
		}
	case 9:
		if m.taken == nil && len(m.elements) == 0 {
			do("Take", func() { m.take(q) })
		}
	case 10:
		do("deletion of the path", func() {
			_ = m.operator.Delete().DeletingChildrenIfNeeded().ForPath(ctx, queuePath)
			m.elements = nil
		})
	case 11:
		do("outage", func() {
			outage(m.T, m.server.Faults(), m.client)()
			awaitSilence(m.T, m.server.Faults())
			must(m.T, m.client.BlockUntilConnected(ctx))
		})
	case 12:
		do("change of the path", func() { _, _ = m.operator.SetData().ForPath(ctx, queuePath, []byte("x")) })
	case 13:
		do("pause", func() { <-time.After(time.Duration(m.rand.IntN(2500)) * time.Millisecond) })
	}
}

// offer puts the next element. A Take that waits gets it.
func (m *simpleModel) offer(q *queue.SimpleDistributedQueue) {
	m.Helper()
	m.offered++
	element := fmt.Sprint("element ", m.offered)
	m.elements = append(m.elements, element)
	must(m.T, q.Offer(m.Context(), []byte(element)))
	if taken := m.taken; taken != nil {
		m.taken = nil
		m.want("Take", func(context.Context) ([]byte, error) { return <-taken, nil })
	}
}

// take has a Take wait in the background.
func (m *simpleModel) take(q *queue.SimpleDistributedQueue) {
	taken := make(chan []byte, 1)
	m.taken = taken
	go func() {
		data, _ := q.Take(m.Context())
		taken <- data
	}()
	if m.rand.IntN(2) == 0 {
		awaitSilence(m.T, m.server.Faults())
	}
}

func (m *simpleModel) endTake() {
	if m.taken != nil {
		m.offer(m.queues[0])
	}
}

// want fails if call does not return the first element, which it removes.
func (m *simpleModel) want(name string, call func(context.Context) ([]byte, error)) {
	m.Helper()
	first := ""
	if len(m.elements) > 0 {
		first, m.elements = m.elements[0], m.elements[1:]
	}
	data, err := call(m.Context())
	if err != nil || string(data) != first {
		m.Fatalf("%s: got %q, %v, want %q, after %q", name, data, err, first, m.steps)
	}
}
