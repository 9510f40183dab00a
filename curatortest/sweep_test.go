package curatortest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// sweepTest is a cluster in a bubble and its client.
type sweepTest struct {
	*testing.T
	cluster *curatortest.Cluster
	client  *framework.Client
	began   time.Time
}

// inSweepTest runs a test with a cluster that has just begun.
func inSweepTest(t *testing.T, play func(*sweepTest), opts ...curatortest.ServerOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		cluster := curatortest.NewClusterT(t, 3, append(opts, curatortest.WithoutPort())...)
		client := connect(t, cluster.ConnectString(), framework.WithDialer(cluster.DialContext))
		play(&sweepTest{t, cluster, client, began})
	})
}

// pass lets time pass until an age of the cluster.
func (t *sweepTest) pass(age time.Duration) {
	t.Helper()
	<-time.After(age - time.Since(t.began))
}

func (t *sweepTest) create(mode builders.CreateMode, path string, ttl time.Duration) {
	t.Helper()
	create := t.client.Create().WithMode(mode)
	if ttl > 0 {
		create = create.WithTTL(ttl)
	}
	_, err := create.ForPath(t.Context(), path, nil)
	must(t, err)
}

// use creates a child and deletes it.
func (t *sweepTest) use(path string) {
	t.Helper()
	t.create(builders.Persistent, path+"/child", 0)
	must(t, t.client.Delete().ForPath(t.Context(), path+"/child"))
}

// wantGoneAt waits until a node is deleted and checks the age of the cluster then.
func (t *sweepTest) wantGoneAt(path string, want time.Duration) {
	t.Helper()
	gone := make(chan struct{}, 1)
	stat, err := t.client.CheckExists().UsingWatcher(callbacks.NewWatcher(func(context.Context, zk.Event) {
		gone <- struct{}{}
	})).ForPath(t.Context(), path)
	must(t, err)
	if stat == nil {
		t.Fatalf("%s is gone after %v", path, time.Since(t.began))
	}
	<-gone
	if age := time.Since(t.began); age != want {
		t.Errorf("%s is gone after %v, not %v", path, age, want)
	}
}

// wantLeft checks that a node is still there an hour after the cluster began.
func (t *sweepTest) wantLeft(path string) {
	t.Helper()
	t.pass(time.Hour)
	if !t.cluster.Servers()[0].Exists(path) {
		t.Errorf("%s is gone", path)
	}
}

func TestSweepEveryMinute(t *testing.T) {
	inSweepTest(t, func(t *sweepTest) {
		t.create(builders.Container, "/container", 0)
		t.create(builders.Container, "/never-used", 0)
		t.create(builders.PersistentWithTTL, "/ttl", 10*time.Second)
		t.create(builders.PersistentWithTTL, "/longer", 70*time.Second)
		t.pass(30 * time.Second)
		t.use("/container")
		t.wantGoneAt("/container", time.Minute)
		if t.cluster.Servers()[0].Exists("/ttl") {
			t.Error("what has a time to live is not swept")
		}
		t.wantGoneAt("/longer", 2*time.Minute)
		t.wantLeft("/never-used")
	})
}

func TestSweepInterval(t *testing.T) {
	inSweepTest(t, func(t *sweepTest) {
		t.create(builders.Container, "/container", 0)
		t.use("/container")
		t.wantGoneAt("/container", 100*time.Millisecond)
		t.create(builders.PersistentWithTTL, "/ttl", 250*time.Millisecond)
		t.wantGoneAt("/ttl", 400*time.Millisecond)
	}, curatortest.WithSweepInterval(100*time.Millisecond))
}

func TestContainerThatWasNeverUsed(t *testing.T) {
	inSweepTest(t, func(t *sweepTest) {
		t.create(builders.Container, "/never-used", 0)
		t.wantGoneAt("/never-used", 6*time.Minute)
	}, curatortest.WithMaxNeverUsed(5*time.Minute))
}

// A leader begins to count when it begins to lead.
func TestSweepOfANewLeader(t *testing.T) {
	inSweepTest(t, func(t *sweepTest) {
		t.create(builders.Container, "/container", 0)
		t.use("/container")
		t.pass(50 * time.Second)
		leader, others := followers(t, t.cluster)
		must(t, leader.Stop())
		others[0].EventuallyT(t.T, "a new leader", func() bool { _, err := t.cluster.Leader(); return err == nil })
		t.wantGoneAt("/container", 110*time.Second)
	})
}

// Time that is advanced has all the sweeps that are due in it: a container that is emptied by one goes with the next.
func TestSweepsOfTimeThatIsAdvanced(t *testing.T) {
	inSweepTest(t, func(t *sweepTest) {
		for _, path := range []string{"/a", "/a/b", "/a/b/c"} {
			t.create(builders.Container, path, 0)
		}
		t.use("/a/b/c")
		t.cluster.Advance(time.Minute)
		leader, _ := followers(t, t.cluster)
		if leader.Exists("/a/b/c") || !leader.Exists("/a/b") {
			t.Error("not one sweep in a minute")
		}
		t.cluster.Advance(time.Hour)
		if leader.Exists("/a") {
			t.Error("not all sweeps in an hour")
		}
	})
}
