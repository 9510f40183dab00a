package atomic

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// No server can be brought to four billion writes, so the test says what was read.
func TestForceSetEndsWrappedVersion(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"plain": nil, "receipts": {WithReceipts("/receipts")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client, err := framework.New(server.Addr(),
					framework.WithDialer(server.DialContext), framework.WithoutEnsembleTracker())
				must(t, err)
				must(t, client.Start())
				defer func() { must(t, client.Close()) }()
				n := NewDistributedAtomicLong(client, "/n", retry.NTimes(3, 0), opts...)
				must(t, n.ForceSet(t.Context(), 7))
				e := n.engine
				e.known = snapshot{exists: true, data: encode[int64](7), version: -1, epoch: e.watch.epoch.Load()}
				e.watch.set.Store(true)
				force := &call{force: true, change: func([]byte) ([]byte, error) { return encode[int64](8), nil }}
				other := &call{change: func([]byte) ([]byte, error) { return encode[int64](9), nil }}
				r := &round{calls: []*call{other, force}, n: 2}
				for _, c := range r.calls {
					c.done = make(chan struct{})
				}
				_, err = e.try(t.Context(), r, func() {})
				must(t, err)
				if !force.out.succeeded || force.out.err != nil {
					t.Errorf("the force set has %+v", force.out)
				}
				if other.out.succeeded || !errors.Is(other.out.err, errVersion) {
					t.Errorf("the other change has %+v", other.out)
				}
				got, err := n.Increment(t.Context())
				if err != nil || got.Pre != 8 || got.Post != 9 {
					t.Errorf("afterwards %+v, %v", got, err)
				}
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
