package curatortest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// connect gives a client of the library.
func connect(tb testing.TB, connectString string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client, err := framework.New(connectString,
		append([]framework.Option{framework.WithoutEnsembleTracker()}, opts...)...)
	must(tb, err)
	must(tb, client.Start())
	tb.Cleanup(func() { must(tb, client.Close()) })
	must(tb, client.BlockUntilConnected(tb.Context()))
	return client
}

func ephemeral(tb testing.TB, client *framework.Client, path string) {
	tb.Helper()
	_, err := client.Create().WithMode(builders.Ephemeral).ForPath(tb.Context(), path, nil)
	must(tb, err)
}

func TestServerKeepsItsDataAndSessionsWhileStopped(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := connect(t, server.ConnectString())
	ephemeral(t, client, "/mine")
	session, addr := client.SessionID(), server.Addr()
	must(t, server.Stop())
	must(t, server.Stop())
	if _, err := server.DialContext(t.Context(), "", ""); err == nil {
		t.Error("a stopped server accepts a connection")
	}
	must(t, server.Restart())
	must(t, client.BlockUntilConnected(t.Context()))
	if client.SessionID() != session || server.Addr() != addr || !server.Exists("/mine") {
		t.Errorf("session %#x after %#x at %s after %s", client.SessionID(), session, server.Addr(), addr)
	}
	must(t, server.Restart()) // one that runs
	must(t, client.BlockUntilConnected(t.Context()))
}

func TestClosedServerStaysClosed(t *testing.T) {
	server, err := curatortest.NewServer()
	must(t, err)
	must(t, server.Close())
	must(t, server.Close())
	for what, err := range map[string]error{
		"stop": server.Stop(), "restart": server.Restart(),
		"freeze": server.Freeze(),
	} {
		if err == nil {
			t.Errorf("%s of a closed server", what)
		}
	}
	if _, err := server.DialContext(t.Context(), "", ""); err == nil {
		t.Error("a closed server accepts a connection")
	}
}

func TestServerWithWrongOptions(t *testing.T) {
	for name, opt := range map[string]curatortest.ServerOption{
		"tick":           curatortest.WithTickTime(0),
		"least timeout":  curatortest.WithSessionTimeouts(-time.Second, time.Second),
		"most timeout":   curatortest.WithSessionTimeouts(2*time.Second, time.Second),
		"sweep interval": curatortest.WithSweepInterval(0),
		"buffer":         curatortest.WithMaxBuffer(0),
		"address":        curatortest.WithAddr("nowhere:-1"),
	} {
		if server, err := curatortest.NewServer(opt); err == nil {
			t.Errorf("%s: no error", name)
			must(t, server.Close())
		}
	}
	if _, err := curatortest.NewCluster(0); err == nil {
		t.Error("a cluster of no servers")
	}
}

func TestServerAtAnAddress(t *testing.T) {
	first := curatortest.NewServerT(t)
	if server, err := curatortest.NewServer(curatortest.WithAddr(first.Addr())); err == nil {
		t.Error("two servers on one port")
		must(t, server.Close())
	}
	addr := first.Addr()
	must(t, first.Close())
	if second := curatortest.NewServerT(t, curatortest.WithAddr(addr)); second.Addr() != addr {
		t.Errorf("at %s, not %s", second.Addr(), addr)
	}
}

// TestServerInABubble has a session of a minute end in no time.
func TestServerInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		holder := connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		next := connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		hold, err := locks.NewInterProcessMutex(holder, "/lock").Acquire(t.Context())
		must(t, err)
		began := time.Now()
		server.Faults().Add(curatortest.Rule{
			SessionID: holder.SessionID(), Ops: []string{"ping", "heartbeat"},
			Action: curatortest.CutBefore,
		})
		server.Faults().Add(curatortest.Rule{
			SessionID: holder.SessionID(), Ops: []string{"connect"},
			Action: curatortest.CutBefore,
		})
		<-hold.Context().Done()
		if d := time.Since(began); d != time.Minute {
			t.Errorf("the hold is lost after %v", d)
		}
		_, err = locks.NewInterProcessMutex(next, "/lock").Acquire(t.Context())
		must(t, err)
		if d := time.Since(began); d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("the next one has it after %v", d)
		}
	})
}

func TestExpireSessionRemovesTheNodesAtOnce(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := connect(t, server.ConnectString())
	ephemeral(t, client, "/mine")
	session := client.Session()
	must(t, server.ExpireSession(session.ID()))
	if server.Exists("/mine") {
		t.Error("the node is there")
	}
	<-session.Context().Done()
	if err := server.ExpireSession(session.ID()); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("expired twice: %v", err)
	}
}

// In a bubble, because every real second would be one more than the clock is advanced by.
func TestKillSessionLeavesTheNodesUntilTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := connect(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithSessionTimeout(30*time.Second))
		ephemeral(t, client, "/mine")
		session := client.Session()
		must(t, server.KillSession(session.ID()))
		<-session.Context().Done()
		must(t, client.BlockUntilConnected(t.Context()))
		if client.SessionID() == session.ID() || !server.Exists("/mine") {
			t.Errorf("session %#x after %#x, node %t", client.SessionID(), session.ID(), server.Exists("/mine"))
		}
		server.Advance(29 * time.Second)
		if !server.Exists("/mine") {
			t.Error("the node is gone before the timeout")
		}
		server.Advance(2 * time.Second)
		if server.Exists("/mine") {
			t.Error("the node is there after the timeout")
		}
	})
}

func TestKillSessionWorksThroughAProxyToo(t *testing.T) {
	server := curatortest.NewServerT(t)
	proxy := curatortest.NewProxyT(t, server.Addr())
	client := connect(t, proxy.ConnectString())
	ephemeral(t, client, "/mine")
	session := client.Session()
	proxy.Faults().KillSession(session.ID())
	<-session.Context().Done()
	if !server.Exists("/mine") {
		t.Error("the server has seen it")
	}
}

func TestKeepSession(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := newSession(t, server.Addr())
	client.create(t, "/mine", "", zk.FlagEphemeral)
	session := client.SessionID() // the client has another one soon after the end of this
	release, err := server.KeepSession(session)
	must(t, err)
	server.Advance(time.Hour)
	if !server.Exists("/mine") {
		t.Error("the session has ended")
	}
	release()
	server.Advance(time.Hour)
	if server.Exists("/mine") {
		t.Error("the session has not ended")
	}
	if _, err := server.KeepSession(session); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("kept: %v", err)
	}
}

// A server that finds out with a write that the session has moved on ends the connection.
func TestMoveSession(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t)
	client := newSession(t, server.Addr())
	must(t, server.MoveSession(client.SessionID()))
	client.wantExists(t, "/n", false)
	if _, err := client.Create("/n", nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("a write of a session that has moved: %v", err)
	}
	client.await(t, zk.StateHasSession)
	client.create(t, "/n", "", 0)
	if err := server.MoveSession(1); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("moved: %v", err)
	}
}

// The number of a sequential node is at its end with the greatest that 31 bits hold: then all names are taken.
func TestSequenceThatRunsOver(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := newSession(t, server.Addr())
	client.create(t, "/n", "", 0)
	must(t, server.SetSequence("/n", 2147483646))
	for _, want := range []string{"/n/s-2147483646", "/n/s-2147483647"} {
		got, err := client.Create("/n/s-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil || got != want {
			t.Errorf("%s, error %v, want %s", got, err, want)
		}
	}
	for range 2 {
		_, err := client.Create("/n/s-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("error %v", err)
		}
	}
	if server.SetSequence("/n", 5) == nil || server.SetSequence("/m", 5) == nil {
		t.Error("a sequence has gone back, or one of no node")
	}
}

func TestSweepRemovesWhatIsOver(t *testing.T) {
	server := curatortest.NewServerT(t, curatortest.WithSweepInterval(time.Hour))
	client := connect(t, server.ConnectString())
	ctx := t.Context()
	for _, path := range []string{"/used", "/never-used"} {
		_, err := client.Create().WithMode(builders.Container).ForPath(ctx, path, nil)
		must(t, err)
	}
	_, err := client.Create().WithMode(builders.PersistentWithTTL).WithTTL(10*time.Second).ForPath(ctx, "/short", nil)
	must(t, err)
	ephemeral(t, client, "/used/n")
	server.Sweep()
	if !server.Exists("/used") || !server.Exists("/short") {
		t.Error("removed too early")
	}
	must(t, client.Delete().ForPath(ctx, "/used/n"))
	server.Advance(11 * time.Second)
	server.Sweep()
	if server.Exists("/used") || server.Exists("/short") || !server.Exists("/never-used") {
		t.Errorf("left: %v", server.Children("/"))
	}
}

// A server that has lost what its clients have seen turns them away.
func TestRestoreLosesWhatCameAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t)
	client := newSession(t, server.Addr())
	client.create(t, "/before", "old", 0)
	snapshot := server.Snapshot()
	client.create(t, "/after", "", 0)
	_, err := client.Set("/before", []byte("new"), -1)
	must(t, err)
	server.Restore(snapshot)
	if node, _ := server.Node("/before"); string(node.Data) != "old" || server.Exists("/after") {
		t.Errorf("%q, %v", node.Data, server.Children("/"))
	}
	refused := server.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.DelayReply})
	must(t, refused.Err())
	client.await(t, zk.StateConnected)
	other := newSession(t, server.Addr())
	other.create(t, "/other", "", 0)
	for i := range 5 { // until the server is as far as it was
		other.create(t, fmt.Sprintf("/other/%d", i), "", 0)
	}
	client.await(t, zk.StateHasSession)
	server.Restore(snapshot) // it can be restored twice
	if server.Exists("/other") || string(snapshotData(t, server, "/before")) != "old" {
		t.Error("the snapshot has changed")
	}
}

func snapshotData(tb testing.TB, server *curatortest.Server, path string) []byte {
	tb.Helper()
	node, ok := server.Node(path)
	if !ok {
		tb.Fatalf("no %s", path)
	}
	return node.Data
}

// A session outlives a pause of the server, and ends after it if its client is not heard of.
func TestFrozenServer(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := newSession(t, server.Addr())
	client.create(t, "/mine", "", zk.FlagEphemeral)
	must(t, server.Freeze())
	must(t, server.Freeze())
	server.Advance(time.Hour)
	if !server.Exists("/mine") {
		t.Error("a session has ended meanwhile")
	}
	must(t, server.Thaw())
	must(t, server.Thaw())
	if server.Exists("/mine") {
		t.Error("the session has not ended")
	}
}

func TestFrozenServerThatIsRestartedIsNotFrozen(t *testing.T) {
	server := curatortest.NewServerT(t)
	must(t, server.Freeze())
	must(t, server.Restart())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if word, err := server.FourLetterWord(ctx, "ruok"); word != "imok" {
		t.Errorf("%q, error %v", word, err)
	}
}

func TestCloseDoesNotWaitForTakenPort(t *testing.T) {
	server, err := curatortest.NewServer()
	must(t, err)
	restore := server.Faults().RefuseConnects()
	thief, err := net.Listen("tcp", server.Addr())
	must(t, err)
	restored := make(chan struct{})
	go func() {
		restore()
		close(restored)
	}()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop() }()
	must(t, <-stopped)
	must(t, server.Close())
	<-restored
	must(t, thief.Close())
}

// ZooKeeper 3.9 says when what it reports happened, and has several watches on one path.
func TestVersion39(t *testing.T) {
	for version, want := range map[curatortest.Version]bool{curatortest.Version38: false, curatortest.Version39: true} {
		server := curatortest.NewServerT(t, curatortest.WithVersion(version))
		client := newSession(t, server.Addr())
		client.create(t, "/n", "", 0)
		_, _, changed, err := client.GetW("/n")
		must(t, err)
		client.create(t, "/n/m", "", 0)
		_, err = client.Set("/n", nil, -1)
		must(t, err)
		<-changed
		var zxid int64
		for _, e := range server.Trace() {
			if e.Op == "notification" {
				zxid = e.Zxid
			}
		}
		node, _ := server.Node("/n")
		if dated := zxid == node.Stat.Mzxid; dated != want {
			t.Errorf("version %v: the event has zxid %d, the change %d", version, zxid, node.Stat.Mzxid)
		}
		word, err := server.FourLetterWord(t.Context(), "mntr")
		if err != nil || !strings.Contains(word, "zk_version\t3.") {
			t.Errorf("%s, error %v", word, err)
		}
	}
}

func TestServerWithoutTTL(t *testing.T) {
	server := curatortest.NewServerT(t, curatortest.WithoutTTL())
	client := connect(t, server.ConnectString())
	_, err := client.Create().WithMode(builders.PersistentWithTTL).WithTTL(time.Second).ForPath(t.Context(), "/n", nil)
	if err == nil || server.Exists("/n") {
		t.Errorf("a node with a time to live: %v", err)
	}
}

func TestEventuallyLooksAfterEverythingThatHappens(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := connect(t, server.ConnectString())
	seen := make(chan struct{})
	go func() {
		_, err := client.GetChildren().Watched().ForPath(t.Context(), "/")
		must(t, err)
		<-seen
		ephemeral(t, client, "/mine")
		<-seen
		must(t, client.Delete().ForPath(t.Context(), "/mine"))
		must(t, client.Close())
		<-seen
	}()
	for _, step := range []struct {
		what string
		cond func() bool
	}{
		{"the root is watched", func() bool { return server.Watches("/") == 1 }},
		{"the watch has fired", func() bool { return server.Watches("/") == 0 }},
		{"the session has ended", func() bool { return len(server.Sessions()) == 0 }},
	} {
		server.EventuallyT(t, step.what, step.cond)
		seen <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Eventually(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestThousandServersLeaveNothing(t *testing.T) {
	before := openFiles(t)
	for i := range 1000 {
		server, err := curatortest.NewServer()
		must(t, err)
		conn, err := server.DialContext(t.Context(), "", "")
		must(t, err)
		if i%10 == 0 {
			word, err := server.FourLetterWord(t.Context(), "ruok")
			if err != nil || word != "imok" {
				t.Fatalf("%q, error %v", word, err)
			}
		}
		must(t, server.Close())
		must(t, conn.Close())
	}
	if after := openFiles(t); after > before+10 { // the goroutines are counted when the tests are over
		t.Errorf("%d open files, %d before", after, before)
	}
}

func TestTiming(t *testing.T) {
	if d := curatortest.DefaultTiming(); d.Base() != 10*time.Second || d.Session() != 15*time.Second ||
		d.Waiting() != 50*time.Second || d.SessionSleep() != 26250*time.Millisecond || d.Connection() != d.Base() {
		t.Errorf("%v %v %v %v", d.Base(), d.Session(), d.Waiting(), d.SessionSleep())
	}
	if d := curatortest.NewTiming(time.Second).Multiple(0.5).Waiting(); d != 2500*time.Millisecond {
		t.Errorf("%v", d)
	}
}

// BenchmarkFirstSession is from nothing to a client with a session.
func BenchmarkFirstSession(b *testing.B) {
	for b.Loop() {
		server, err := curatortest.NewServer()
		must(b, err)
		client, err := framework.New(server.ConnectString())
		must(b, err)
		must(b, client.Start())
		must(b, client.BlockUntilConnected(b.Context()))
		b.StopTimer()
		must(b, client.Close())
		must(b, server.Close())
		b.StartTimer()
	}
}
