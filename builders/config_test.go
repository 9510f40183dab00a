package builders_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// CURATOR-667: the configuration is outside every chroot and namespace, and so is its path.
func TestGetConfig(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns", "zookeeper"} {
				client, _ := setUp(t, framework.WithNamespace(ns))
				var stored zk.Stat
				ev := succeed(t, w.getConfig(t, client.GetConfig().StoringStatIn(&stored)))
				data, stat, err := testenv.Raw(t).Get(builders.ConfigNode)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "configuration", string(ev.Data), string(data))
				equal(t, "stored stat", stored, *stat)
			}
		})
	}
}

func TestReconfigOfAServerThatStandsAlone(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, _ := setUp(t)
			b := client.Reconfig().Leaving("1")
			err := w.reconfig(t, b).Err
			wantErr(t, err, zk.ErrReconfigDisabled, "reconfig", builders.ConfigNode)
		})
	}
}

// members returns the servers of a configuration, and its version.
func members(tb testing.TB, config []byte) (servers int, version int64) {
	tb.Helper()
	for line := range strings.Lines(string(config)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "server.") {
			servers++
		}
		if hex, ok := strings.CutPrefix(line, "version="); ok {
			var err error
			if version, err = strconv.ParseInt(hex, 16, 64); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return servers, version
}

func TestReconfigOfAnEnsemble(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	cluster, err := curatortest.NewRealCluster(3,
		curatortest.WithConfig("reconfigEnabled", "true"),
		curatortest.WithSystemProperty("zookeeper.skipACL", "yes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	leader, err := cluster.Leader()
	if err != nil {
		t.Fatal(err)
	}
	var leaves *curatortest.RealServer
	var specs []string
	for _, s := range cluster.Servers() {
		specs = append(specs, s.Spec())
		if s != leader {
			leaves = s
		}
	}
	id := fmt.Sprint(leaves.ID())
	// The names of chroot and namespace are those that could be taken off the path by mistake.
	client := newClient(t, leader.Addr(), framework.WithNamespace("zookeeper"))
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			removing := client.WatcherRemoving()
			watcher, events := chanWatcher()
			wantMembers := func(config []byte, want int) (version int64) {
				t.Helper()
				got, version := members(t, config)
				equal(t, "servers", got, want)
				return version
			}
			wantChanged := func() {
				t.Helper()
				wantEvents(t, events, zk.Event{Type: zk.EventNodeDataChanged, Path: builders.ConfigNode})
				equal(t, "watchers", removing.WatcherCount(), 0)
			}
			watch := func() []byte {
				t.Helper()
				ev := succeed(t, w.getConfig(t, removing.GetConfig().UsingWatcher(watcher)))
				equal(t, "watchers", removing.WatcherCount(), 1)
				return ev.Data
			}
			version := wantMembers(watch(), 3)

			b := client.Reconfig().Leaving(id)
			err := w.reconfig(t, b.FromConfig(version+1)).Err
			wantErr(t, err, zk.ErrBadVersion, "reconfig", builders.ConfigNode)

			var stored zk.Stat
			ev := succeed(t, w.reconfig(t, b.FromConfig(version).StoringStatIn(&stored)))
			wantMembers(ev.Data, 2)
			equal(t, "length of the data", int(stored.DataLength), len(ev.Data))
			wantChanged()

			wantMembers(watch(), 2)
			wantMembers(succeed(t, w.reconfig(t, client.Reconfig().Joining(leaves.Spec()))).Data, 3)
			wantChanged()

			wantMembers(watch(), 3)
			wantMembers(succeed(t, w.reconfig(t, client.Reconfig().WithNewMembers(specs...))).Data, 3)
			wantChanged()
		})
	}
}
