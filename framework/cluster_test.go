package framework_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// ensemble is one of three servers whose clients have a chroot.
type ensemble struct {
	*curatortest.RealCluster
}

// TestEnsemble has the stories that need one. They share it, one after the other, because it takes its time
// to start; each leaves it with all servers up.
func TestEnsemble(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	cluster, err := curatortest.NewRealCluster(3,
		curatortest.WithConfig("reconfigEnabled", "true"),
		curatortest.WithSystemProperty("zookeeper.skipACL", "yes"),
		curatortest.WithSystemProperty("readonlymode.enabled", "true"),
		// Without a quorum there are only sessions that a server keeps for itself; they become sessions of all with
		// their first ephemeral node.
		curatortest.WithConfig("localSessionsEnabled", "true"),
		curatortest.WithConfig("localSessionsUpgradingEnabled", "true"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, cluster.Close()) })
	e := ensemble{cluster}
	must(t, connectClient(t, cluster.ConnectString()).CreateContainers(testenv.Context(t), "/app/keep"))
	t.Run("session survives the end of its server", e.sessionSurvives)
	t.Run("without a quorum there is no connection", e.noQuorum)
	t.Run("read-only", e.readOnly)
	t.Run("read-only first", e.readOnlyFirst)
	t.Run("what a former leader does not know is not left behind", e.formerLeader)
	t.Run("configuration is followed", e.followed)
}

func (e ensemble) connectString() string { return e.ConnectString() + "/app" }

// heal starts what does not run and waits until all serve.
func (e ensemble) heal(t *testing.T) {
	t.Helper()
	for _, server := range e.Servers() {
		if server.PID() == 0 {
			must(t, server.Launch())
		}
	}
	for _, server := range e.Servers() {
		must(t, server.AwaitServing(testenv.Context(t)))
	}
}

// killAllBut leaves one server of the three.
func (e ensemble) killAllBut(t *testing.T, survivor *curatortest.RealServer) {
	t.Helper()
	for _, server := range e.Servers() {
		if server != survivor {
			must(t, server.Kill())
		}
	}
}

// endWithOutages is end that takes short outages for granted: servers that elect a leader drop their clients.
func endWithOutages(t *testing.T, recorded states, client *framework.Client) {
	t.Helper()
	closeClient(t, client)
	close(recorded)
	want := suspended
	for state := range recorded {
		if state != want {
			t.Errorf("state %v, want %v or none", state, want)
		}
		want = suspended + reconnected - want
	}
}

// In Java: TestWithCluster.testSessionSurvives.
func (e ensemble) sessionSurvives(t *testing.T) {
	client, recorded := connectRecorded(t, e.connectString())
	session := client.SessionID()
	createEphemeral(t, client, "/mine")
	fired := make(chan zk.Event, 10)
	_, err := client.CheckExists().UsingWatcher(callbacks.NewChanWatcher(fired)).
		ForPath(testenv.Context(t), "/new")
	must(t, err)
	server, err := e.FindConnectionInstance(session)
	if err != nil {
		t.Fatal(err)
	}
	must(t, server.Kill())
	recorded.want(t, suspended, reconnected)
	if client.SessionID() != session || !exists(t, client, "/mine") {
		t.Error("the session is another")
	}
	createEphemeral(t, connectClient(t, e.connectString()), "/new")
	for ev := receive(t, fired); ev.Type != zk.EventNodeCreated; ev = receive(t, fired) {
		if ev.Type != zk.EventSession {
			t.Errorf("watcher gets %v", ev)
		}
	}
	endWithOutages(t, recorded, client)
	e.heal(t)
}

// In Java: TestWithCluster.testSplitBrain.
func (e ensemble) noQuorum(t *testing.T) {
	client, recorded := connectRecorded(t, e.connectString(), framework.WithSessionTimeout(2*time.Second))
	survivor, err := e.FindConnectionInstance(client.SessionID())
	if err != nil {
		t.Fatal(err)
	}
	e.killAllBut(t, survivor) // which then only takes clients that content themselves with reading
	recorded.want(t, suspended, lost)
	e.heal(t)
	recorded.want(t, reconnected)
	endWithOutages(t, recorded, client)
}

// In Java: TestReadOnly. A server without a quorum takes no session that it has with one: the client has to
// give its session up first, and so it does with the other when there is a quorum again.
func (e ensemble) readOnly(t *testing.T) {
	client, recorded := connectRecorded(t, e.connectString(), framework.WithReadOnly(),
		framework.WithSessionTimeout(2*time.Second))
	survivor, err := e.FindConnectionInstance(client.SessionID())
	if err != nil {
		t.Fatal(err)
	}
	e.killAllBut(t, survivor)
	recorded.want(t, suspended, lost, readOnly)
	awaitConnected(t, client)
	session := client.Session()
	if !exists(t, client, "/keep") {
		t.Error("/keep is gone")
	}
	_, err = client.Create().ForPath(testenv.Context(t), "/read-only", nil)
	wantErr(t, "create", err, framework.ErrNotReadOnly)
	e.heal(t)
	recorded.want(t, suspended, lost, reconnected)
	wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
	createEphemeral(t, client, "/read-only")
	endWithOutages(t, recorded, client)
}

func (e ensemble) readOnlyFirst(t *testing.T) {
	survivor := e.Servers()[0]
	e.killAllBut(t, survivor)
	testenv.Eventually(t, func() bool {
		answer, err := survivor.FourLetterWord(testenv.Context(t), "isro")
		return err == nil && answer == "ro"
	}, "the server that is left serves readers")
	client := newClient(t, e.connectString(), framework.WithReadOnly(), framework.WithEnsembleTracker())
	recorded := record(client)
	start(t, client)
	recorded.want(t, readOnly)
	session := client.Session()
	if exists(t, client, "/none") {
		t.Error("/none exists")
	}
	e.heal(t)
	recorded.want(t, suspended, lost, connected)
	wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
	createEphemeral(t, client, "/read-only-first")
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	endWithOutages(t, recorded, client)
}

// formerLeader has a client that has given up a protected create come back to a server that still takes itself for the
// leader: the others went on without it, and what it does not know of is the node. A sync it would answer.
func (e ensemble) formerLeader(t *testing.T) {
	ctx := testenv.Context(t)
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	proxy := proxyTo(t, leader.Addr())
	client := connectClient(t, proxy.Addr()+"/app", framework.WithRetryPolicy(retry.NTimes(0, 0)))
	var others []string
	for _, server := range e.Servers() {
		if server != leader {
			others = append(others, server.Addr())
		}
	}
	observer := connectClient(t, strings.Join(others, ",")+"/app",
		framework.WithRetryPolicy(retry.NTimes(200, 50*time.Millisecond)))
	id := zkpath.NewProtectionID()

	must(t, leader.Freeze())
	_, err = observer.Create().ForPath(ctx, zkpath.ProtectPath(id, "/n"), nil)
	must(t, err)
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutBefore, Count: 1})
	proxy.Faults().ResetTrace()
	_, err = client.Create().WithProtectionID(id).ForPath(ctx, "/n", nil)
	wantErr(t, "create", err, framework.ErrConnectionLoss)
	testenv.Eventually(t, func() bool {
		return slices.ContainsFunc(proxy.Faults().Trace(), func(e curatortest.TraceEntry) bool { return e.Op == "connect" })
	}, "the client is back")
	must(t, leader.Thaw())
	testenv.Eventually(t, func() bool { return !exists(t, observer, zkpath.ProtectPath(id, "/n")) }, "the node is deleted")
	e.heal(t)
}

// followed changes the ensemble under a client that knows only one of its servers at first. C-593: the chroot
// stays.
func (e ensemble) followed(t *testing.T) {
	ctx := testenv.Context(t)
	servers := newProvider(e.Servers()[0].Addr()+"/app", true)
	client, recorded := connectRecorded(t, "", framework.WithEnsembleProvider(servers), framework.WithEnsembleTracker())
	session := client.SessionID()
	createEphemeral(t, client, "/followed")
	addr := func(i int) string { return e.Servers()[i].Addr() }
	knows := func(want ...string) func() bool {
		return func() bool {
			s := servers.ConnectionString()
			hosts, chroot := split(s)
			for _, a := range want {
				if !strings.Contains(hosts, a) {
					return false
				}
			}
			return chroot == "/app" && strings.Count(hosts, ",") == len(want)-1
		}
	}
	testenv.Eventually(t, knows(addr(0), addr(1), addr(2)), "the client knows all servers")
	if config := string(client.CurrentConfig()); !strings.Contains(config, "server.3=") {
		t.Errorf("configuration %q", config)
	}

	admin := connectClient(t, e.ConnectString())
	reconfig := func(b builders.Reconfig) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			_, err := b.ForEnsemble(ctx)
			if err != nil && !errors.Is(err, jute.ErrReconfigInProgress) { // the last one may be under way
				t.Fatal(err)
			}
			return err == nil
		}, "a reconfiguration")
	}
	third := e.Servers()[2]
	reconfig(admin.Reconfig().Leaving("3"))
	testenv.Eventually(t, knows(addr(0), addr(1)), "the client knows of the server that has left")
	reconfig(admin.Reconfig().Joining(third.Spec()))
	testenv.Eventually(t, knows(addr(0), addr(1), addr(2)), "the client knows of the server that has come back")

	must(t, e.Servers()[0].Kill()) // the only one that the client knew at first
	recorded.want(t, suspended, reconnected)
	if client.SessionID() != session || !exists(t, client, "/followed") {
		t.Error("the session or the chroot is another")
	}
	endWithOutages(t, recorded, client)
	e.heal(t)
}
