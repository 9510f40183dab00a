package clientgo_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/gocurator/curator/examples/clientgo"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The times of the elections.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

const leasePath, workPath = "/election/lease", "/work"

// TestNextCandidateLeadsWhenTheLeaderEnds ends the leader, or its connection. The other candidate leads then, and not
// before: no write of the one comes between two of the other.
func TestNextCandidateLeadsWhenTheLeaderEnds(t *testing.T) {
	for name, end := range map[string]func(*candidate){
		"context": func(c *candidate) { c.cancel() },
		"connection": func(c *candidate) {
			c.place.Faults().RefuseConnects() // until the end of the test
			c.place.Faults().CutAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
				client := testclient.ConnectAt(t, one, chroot)
				if _, err := client.Create().ForPath(t.Context(), workPath, nil); err != nil {
					t.Fatal(err)
				}
				elected := make(chan *candidate, 2)
				var running sync.WaitGroup
				defer running.Wait()
				candidates := []*candidate{{name: "one", place: one}, {name: "two", place: two}}
				for _, c := range candidates {
					c.client = testclient.ConnectAt(t, c.place, chroot)
					c.elect(t, &running, elected)
					defer c.cancel()
				}
				first := <-elected
				second := candidates[0]
				if second == first {
					second = candidates[1]
				}
				first.awaitWrites(t, 3)
				end(first)
				if got := <-elected; got != second {
					t.Errorf("%s leads again", got.name)
				}
				second.awaitWrites(t, 3)
			})
		})
	}
}

// candidate takes part in an election. While it leads it writes to the node of the work.
type candidate struct {
	name   string
	place  testenv.Place
	client *framework.Client
	cancel context.CancelFunc
	writes chan int32 // the version after each write
}

func (c *candidate) elect(t *testing.T, running *sync.WaitGroup, elected chan<- *candidate) {
	t.Helper()
	c.writes = make(chan int32, 100)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &clientgo.Lock{Client: c.client, Path: leasePath, ID: c.name},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				elected <- c
				running.Go(func() { c.work(t, ctx) })
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	running.Go(func() { elector.Run(ctx) })
}

// work writes until ctx ends. Each write is for the version that the last one has left: that of another leader would be
// in its way.
func (c *candidate) work(t *testing.T, ctx context.Context) {
	var stat zk.Stat
	_, err := c.client.GetData().StoringStatIn(&stat).ForPath(ctx, workPath)
	pause := time.NewTicker(retryPeriod / 5)
	defer pause.Stop()
	for version := stat.Version; err == nil; {
		var now *zk.Stat
		if now, err = c.client.SetData().WithVersion(version).ForPath(ctx, workPath, []byte(c.name)); err != nil {
			break
		}
		version = now.Version
		select {
		case c.writes <- version:
		default:
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
	if errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("%s: another one has written: %v", c.name, err)
	}
}

func (c *candidate) awaitWrites(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c.writes:
		case <-testenv.Context(t).Done():
			t.Fatalf("%s does not write", c.name)
		}
	}
}

func TestUpdateOfAnOldVersionIsAConflict(t *testing.T) {
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := testclient.ConnectAt(t, place, chroot)
		ctx := t.Context()
		one := &clientgo.Lock{Client: client, Path: leasePath, ID: "one"}
		two := &clientgo.Lock{Client: client, Path: leasePath, ID: "two"}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "one", LeaseDurationSeconds: 15}
		if _, _, err := one.Get(ctx); !apierrors.IsNotFound(err) {
			t.Errorf("get of none: %v", err)
		}
		if err := one.Update(ctx, record); !apierrors.IsNotFound(err) {
			t.Errorf("update of none: %v", err)
		}
		if err := one.Create(ctx, record); err != nil {
			t.Fatal(err)
		}
		if err := two.Create(ctx, record); !errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("second create: %v", err)
		}
		got, before, err := two.Get(ctx)
		if err != nil || *got != record {
			t.Errorf("read %+v, %v", got, err)
		}
		if err := one.Update(ctx, record); err != nil { // behind its own create
			t.Fatal(err)
		}
		record.HolderIdentity = "two"
		if err := two.Update(ctx, record); !apierrors.IsConflict(err) {
			t.Errorf("update of an old version: %v", err)
		}
		if got, after, err := two.Get(ctx); err != nil || got.HolderIdentity != "one" || bytes.Equal(before, after) {
			t.Errorf("after a renewal of the same record: %+v, %v, %q and %q", got, err, before, after)
		}
		for range 2 { // behind its own get, and behind its own update
			if err := two.Update(ctx, record); err != nil {
				t.Error(err)
			}
		}
	})
}
