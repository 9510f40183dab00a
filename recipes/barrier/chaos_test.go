package barrier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/retry"
)

// Size of the chaos test.
const (
	chaosMembers = 8
	chaosRounds  = 500
)

// TestDoubleBarrierChaos has members enter and leave, round after round, some of them slow, while connections
// are cut, held up and refused: no member is in before all have come or out before all have gone, and none waits for
// ever.
func TestDoubleBarrierChaos(t *testing.T) {
	t.Parallel()
	duration := testenv.Size(time.Second, 5*time.Second, 10*time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), duration+time.Minute)
	defer cancel()
	p := &party{scene: newScene(t), Test: chaos.New(t)}
	p.ctx = ctx
	p.last.Store(chaosRounds - 1)
	over := time.AfterFunc(duration, func() { p.over.Store(true) })
	defer over.Stop()

	raging, calm := context.WithCancel(ctx)
	defer calm()
	var members, disturber sync.WaitGroup
	var network []*curatortest.Faults
	for i := range chaosMembers {
		client, faults := p.proxied(framework.WithRetryPolicy(retry.Forever(10 * time.Millisecond)))
		network = append(network, faults)
		members.Go(func() {
			defer calm()
			if err := p.take(i, client); err != nil {
				p.Errorf("member %d: %v", i, err)
				cancel() // the others would wait for it
			}
		})
	}
	faults := 0
	disturber.Go(func() {
		never := func(int) bool { return false }
		faults = p.Disturb(raging, chaos.Pace{Most: 20 * time.Millisecond}, never, cut(network), hold(network),
			refuse(network))
	})
	members.Wait()
	disturber.Wait()
	t.Logf("%d rounds, %d faults", p.last.Load()+1, faults)
	if faults == 0 {
		t.Error("no fault")
	}
	p.awaitNothing()
}

func cut(network []*curatortest.Faults) chaos.Fault {
	return func(d *chaos.Disturbance) string {
		i := d.Random.IntN(len(network))
		network[i].CutAll()
		return fmt.Sprint("cut ", i)
	}
}

const awhile = 10 * time.Millisecond

func hold(network []*curatortest.Faults) chaos.Fault {
	return func(d *chaos.Disturbance) string {
		i := d.Random.IntN(len(network))
		d.After(awhile, fmt.Sprint("let go ", i), network[i].Freeze())
		return fmt.Sprint("held up ", i)
	}
}

func refuse(network []*curatortest.Faults) chaos.Fault {
	return func(d *chaos.Disturbance) string {
		i := d.Random.IntN(len(network))
		d.After(awhile, fmt.Sprint("accepted ", i), network[i].RefuseConnects())
		network[i].CutAll()
		return fmt.Sprint("refused ", i)
	}
}

// party is a group of members that go through the rounds.
type party struct {
	*scene
	*chaos.Test
	over       atomic.Bool               // the first member is to make its round the last
	last       atomic.Int32              // round
	came, went [chaosRounds]atomic.Int32 // how many have, of each round
}

// take is the part of a member.
func (p *party) take(i int, client *framework.Client) error {
	random := p.Random(i)
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath, chaosMembers)
	for round := int32(0); round <= p.last.Load(); round++ {
		if i == 0 && p.over.Load() {
			p.last.Store(round) // no member can be further
		}
		if random.IntN(8) == 0 { // another member comes
			d = barrier.NewDistributedDoubleBarrier(client, barrierPath, chaosMembers)
		}
		pause(random)
		p.came[round].Add(1)
		err := d.Enter(p.ctx)
		if n := p.came[round].Load(); err != nil || n != chaosMembers {
			return fmt.Errorf("round %d: in when %d have come, error %v", round, n, err)
		}
		pause(random)
		p.went[round].Add(1)
		err = d.Leave(p.ctx)
		if n := p.went[round].Load(); err != nil || n != chaosMembers {
			return fmt.Errorf("round %d: out when %d have gone, error %v", round, n, err)
		}
		if stat, err := client.CheckExists().ForPath(p.ctx, barrierPath+"/ready"); err != nil || stat != nil {
			return fmt.Errorf("round %d: out, and what let it in is there: %+v, error %v", round, stat, err)
		}
	}
	return nil
}

// pause makes some slow.
func pause(random *rand.Rand) {
	if random.IntN(4) == 0 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
	}
}
