package atomic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

const chaosClients = 8

// TestNumberChaos has clients count while connections are cut, held up and refused: the number is what they know.
func TestNumberChaos(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]atomic.Option{
		"plain": nil, "receipts": {atomic.WithReceipts(receiptsPath)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			countInChaos(t, opts)
		})
	}
}

func countInChaos(t *testing.T, opts []atomic.Option) {
	t.Helper()
	test, ctx, chroot := chaos.New(t), testenv.Context(t), testenv.Chroot(t)
	most := testenv.Size(40, 100, 500)
	raging, calm := context.WithCancel(ctx)
	defer calm()
	var mu sync.Mutex
	var sum tally
	var uncertain int // writes
	var counting sync.WaitGroup
	var network []*curatortest.Faults
	var clients []*framework.Client
	for i := range chaosClients {
		proxy := curatortest.NewProxyT(t, testenv.Addr(t))
		client := testclient.Connect(t, proxy.Addr()+chroot, framework.WithSessionTimeout(30*time.Second),
			framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
		network, clients = append(network, proxy.Faults()), append(clients, client)
		n := atomic.NewDistributedAtomicLong(client, counterPath, retry.Forever(time.Millisecond), opts...)
		random := test.Random(i)
		counting.Go(func() {
			for raging.Err() == nil {
				r, err := n.Add(ctx, int64(1+random.IntN(2)))
				mu.Lock()
				switch {
				case isUncertain(err):
					sum.uncertain += r.Post - r.Pre
					uncertain++
					test.Note("client %d: %d to %d is uncertain", i, r.Pre, r.Post)
				case err != nil || !r.Succeeded:
					test.Errorf("client %d: %+v, %v", i, r, err)
				default:
					sum.acknowledged += r.Post - r.Pre
				}
				mu.Unlock()
			}
		})
	}
	faults := test.Disturb(raging, chaos.Pace{Most: 20 * time.Millisecond}, func(n int) bool { return n >= most },
		cut(network), hold(network), refuse(network))
	calm()
	counting.Wait()
	direct := testclient.Connect(t, testenv.Addr(t)+chroot)
	got, err := atomic.NewDistributedAtomicLong(direct, counterPath, patient).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d faults, the number is %d, %d acknowledged, %d uncertain in %d writes",
		faults, got, sum.acknowledged, sum.uncertain, uncertain)
	if got < sum.acknowledged || got > sum.acknowledged+sum.uncertain {
		test.Errorf("the number is %d, %d were acknowledged and %d are uncertain", got, sum.acknowledged, sum.uncertain)
	}
	if opts != nil && sum.uncertain > 0 { // no session has ended
		test.Errorf("%d are uncertain", sum.uncertain)
	}
	for _, client := range clients {
		if err := client.Close(); err != nil && !errors.Is(err, framework.ErrCloseTimeout) {
			t.Error(err)
		}
	}
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
