package builders_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
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

// newEnsemble returns the connect string of three servers whose configuration any client may change, and their specs.
func newEnsemble(tb testing.TB) (connect string, specs []string) {
	tb.Helper()
	if !testenv.Real() {
		cluster := curatortest.NewClusterT(tb, 3, curatortest.WithReconfig(), curatortest.WithoutACLs())
		for _, s := range cluster.Servers() {
			specs = append(specs, s.Spec())
		}
		return cluster.ConnectString(), specs
	}
	cluster, err := curatortest.NewRealCluster(3, curatortest.WithReconfig(), curatortest.WithoutACLs())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			tb.Error(err)
		}
	})
	for _, s := range cluster.Servers() {
		specs = append(specs, s.Spec())
	}
	return cluster.ConnectString(), specs
}

// The configuration is below some of these chroots, and its path begins with the name of another one.
func TestConfigWatchInAnyChrootReportsConfigNode(t *testing.T) {
	t.Parallel()
	connect, specs := newEnsemble(t)
	admin := newClient(t, connect)
	for _, node := range []string{"/zoo", "/zookeeper/con"} {
		succeed(t, foreground.create(t, admin.Create(), node, nil))
	}
	changed := zk.Event{Type: zk.EventNodeDataChanged, Path: builders.ConfigNode}
	for _, chroot := range []string{"", "/zoo", "/zookeeper", "/zookeeper/con", "/zookeeper/config"} {
		for _, ns := range []string{"", "zookeeper"} {
			for _, w := range ways {
				t.Run(fmt.Sprintf("chroot %q, namespace %q, %s", chroot, ns, w), func(t *testing.T) {
					client := newClient(t, connect+chroot, framework.WithNamespace(ns))
					listened := make(chan zk.Event, 100)
					client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
						if ev.Type == callbacks.Watched && ev.Watched.Type != zk.EventSession {
							listened <- ev.Watched
						}
					})
					removing := client.WatcherRemoving()
					watcher, events := chanWatcher()
					succeed(t, w.getConfig(t, removing.GetConfig().UsingWatcher(watcher)))
					succeed(t, w.getConfig(t, client.GetConfig().Watched()))
					equal(t, "watchers", removing.WatcherCount(), 1)

					succeed(t, w.reconfig(t, admin.Reconfig().WithNewMembers(specs...)))
					wantEvents(t, events, changed)
					wantEvents(t, listened, changed)
					equal(t, "watchers after the event", removing.WatcherCount(), 0)
				})
			}
		}
	}
}

// A client whose chroot contains the configuration reaches it by two paths. Each watcher gets the one that it was set
// with.
func TestConfigWatchBesideWatchesBelowTheChrootReportsConfigNode(t *testing.T) {
	t.Parallel()
	connect, specs := newEnsemble(t)
	admin := newClient(t, connect)
	for chroot, path := range map[string]string{
		"": builders.ConfigNode, "/zookeeper": "/config", builders.ConfigNode: "/",
	} {
		for _, w := range ways {
			t.Run(fmt.Sprintf("chroot %q, %s", chroot, w), func(t *testing.T) {
				client := newClient(t, connect+chroot)
				removing := client.WatcherRemoving()
				config, ofConfig := chanWatcher()
				data, ofData := chanWatcher()
				persistent, ofPersistent := chanWatcher()
				recursive, ofRecursive := chanWatcher()
				add := removing.Watches().Add()
				watch := func() {
					t.Helper()
					succeed(t, w.getConfig(t, removing.GetConfig().UsingWatcher(config)))
					succeed(t, w.getData(t, removing.GetData().UsingWatcher(data), path))
					succeed(t, w.addWatch(t, add.WithMode(builders.PersistentWatch).UsingWatcher(persistent), path))
					succeed(t, w.addWatch(t, add.UsingWatcher(recursive), path))
					equal(t, "watchers", removing.WatcherCount(), 4)
				}
				wantAll := func(typ zk.EventType) {
					t.Helper()
					wantEvents(t, ofConfig, zk.Event{Type: typ, Path: builders.ConfigNode})
					for _, events := range []<-chan zk.Event{ofData, ofPersistent, ofRecursive} {
						wantEvents(t, events, zk.Event{Type: typ, Path: path})
					}
				}
				watch()
				succeed(t, w.removeWatches(t, client.Watches().RemoveAll(), path))
				wantAll(zk.EventNotWatching)
				equal(t, "watchers after the removal", removing.WatcherCount(), 0)

				watch()
				succeed(t, w.reconfig(t, admin.Reconfig().WithNewMembers(specs...)))
				wantAll(zk.EventNodeDataChanged)
				equal(t, "watchers after the event", removing.WatcherCount(), 2)
			})
		}
	}
}

// A node below the chroot may have the name of the configuration, and is another one.
func TestRemoveAllOfANodeNamedAsTheConfigurationKeepsTheConfigWatch(t *testing.T) {
	t.Parallel()
	connect, specs := newEnsemble(t)
	admin := newClient(t, connect)
	succeed(t, foreground.create(t, admin.Create().CreatingParentsIfNeeded(), "/zoo"+builders.ConfigNode, nil))
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			removing := newClient(t, connect+"/zoo").WatcherRemoving()
			config, ofConfig := chanWatcher()
			node, ofNode := chanWatcher()
			succeed(t, w.getConfig(t, removing.GetConfig().UsingWatcher(config)))
			succeed(t, w.getData(t, removing.GetData().UsingWatcher(node), builders.ConfigNode))
			equal(t, "watchers", removing.WatcherCount(), 2)
			succeed(t, w.removeWatches(t, removing.Watches().RemoveAll(), builders.ConfigNode))
			wantEvents(t, ofNode, zk.Event{Type: zk.EventNotWatching, Path: builders.ConfigNode})
			equal(t, "watchers after the removal", removing.WatcherCount(), 1)

			succeed(t, w.reconfig(t, admin.Reconfig().WithNewMembers(specs...)))
			wantEvents(t, ofConfig, zk.Event{Type: zk.EventNodeDataChanged, Path: builders.ConfigNode})
			equal(t, "watchers after the event", removing.WatcherCount(), 0)
		})
	}
}
