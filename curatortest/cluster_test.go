package curatortest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// followers gives the leader and the others.
func followers(tb testing.TB, c *curatortest.Cluster) (leader *curatortest.Server, others []*curatortest.Server) {
	tb.Helper()
	leader, err := c.Leader()
	must(tb, err)
	for _, s := range c.Servers() {
		if s != leader {
			others = append(others, s)
		}
	}
	return leader, others
}

func TestClusterHasOneTree(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	clients := make([]*session, 0, 3)
	for _, s := range cluster.Servers() {
		clients = append(clients, newSession(t, s.Addr()))
	}
	_, _, created, err := clients[2].ExistsW("/n")
	must(t, err)
	clients[0].create(t, "/n", "x", 0)
	clients[1].wantData(t, "/n", "x")
	if ev := <-created; ev.Type != zk.EventNodeCreated {
		t.Errorf("event %v", ev)
	}
	clients[2].wantData(t, "/n", "x")
	for i, s := range cluster.Servers() {
		found, err := cluster.FindConnectionInstance(clients[i].SessionID())
		if err != nil || found != s {
			t.Errorf("session %d is at %v, error %v", i, found, err)
		}
	}
	if _, err := cluster.FindConnectionInstance(1); !errors.Is(err, curatortest.ErrNoServer) {
		t.Errorf("error %v", err)
	}
	config, _ := cluster.Servers()[0].Node("/zookeeper/config")
	if len(config.Data) == 0 {
		t.Error("no configuration")
	}
}

func TestClusterOutlivesItsLeader(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	leader, others := followers(t, cluster)
	client := newSession(t, leader.Addr(), others[0].Addr(), others[1].Addr())
	client.create(t, "/mine", "x", zk.FlagEphemeral)
	id := client.SessionID()
	must(t, cluster.KillServer(leader))
	next, _ := followers(t, cluster)
	if next == leader {
		t.Error("the leader leads on")
	}
	// A client of the leader may have moved to another server before that one lost its leader and closed all connections:
	// that it has its session gets an event twice then.
	testenv.Eventually(t, func() bool {
		data, _, err := client.Get("/mine")
		return err == nil && string(data) == "x"
	}, "the client has its session on another server")
	if client.SessionID() != id {
		t.Errorf("session %#x after %#x", client.SessionID(), id)
	}
	client.create(t, "/later", "", 0)
	must(t, cluster.RestartServer(leader))
	newSession(t, leader.Addr()).wantExists(t, "/later", true)
	if again, _ := followers(t, cluster); again != next {
		t.Error("the member that comes back leads")
	}
}

func TestClusterWithoutQuorumDoesNotServe(t *testing.T) {
	t.Parallel()
	cluster := curatortest.NewClusterT(t, 3)
	servers := cluster.Servers()
	client := newSession(t, servers[0].Addr())
	client.create(t, "/mine", "", zk.FlagEphemeral)
	must(t, servers[1].Stop())
	must(t, servers[2].Stop())
	client.await(t, zk.StateDisconnected)
	if _, err := cluster.Leader(); !errors.Is(err, curatortest.ErrNoServer) {
		t.Errorf("error %v", err)
	}
	cluster.Advance(time.Hour)
	if !servers[0].Exists("/mine") {
		t.Error("a session has ended without a leader")
	}
	must(t, servers[1].Restart())
	client.await(t, zk.StateHasSession)
	client.wantExists(t, "/mine", true)
}

func TestPartition(t *testing.T) {
	t.Parallel()
	cluster := curatortest.NewClusterT(t, 3)
	leader, others := followers(t, cluster)
	inside, outside := newSession(t, others[0].Addr()), newSession(t, leader.Addr())
	outside.create(t, "/before", "", 0)
	heal := cluster.Partition(others)
	outside.await(t, zk.StateDisconnected)
	inside.await(t, zk.StateHasSession)
	inside.create(t, "/during", "", 0)
	if next, _ := followers(t, cluster); next == leader {
		t.Error("the minority leads")
	}
	if leader.Exists("/during") {
		t.Error("the minority has the write")
	}
	word, err := leader.FourLetterWord(t.Context(), "srvr")
	if err != nil || word != "This ZooKeeper instance is not currently serving requests\n" {
		t.Errorf("%q, error %v", word, err)
	}
	heal()
	outside.await(t, zk.StateHasSession)
	outside.wantExists(t, "/during", true)

	apart := cluster.Partition() // each alone
	heal()                       // is over
	if _, err := cluster.Leader(); err == nil {
		t.Error("an old partition has healed a new one")
	}
	apart()
	outside.await(t, zk.StateHasSession)
}

func TestServerThatLagsReadsWhatIsOutOfDate(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	leader, others := followers(t, cluster)
	ahead, behind := newSession(t, leader.Addr()), newSession(t, others[0].Addr())
	cluster.SetLag(others[0], -1)
	ahead.create(t, "/n", "x", 0)
	behind.wantExists(t, "/n", false)
	_, _, created, err := behind.ExistsW("/n")
	must(t, err)
	_, err = behind.Sync("/")
	must(t, err)
	if ev := <-created; ev.Type != zk.EventNodeCreated {
		t.Errorf("event %v", ev)
	}
	behind.wantExists(t, "/n", true)
	ahead.create(t, "/m", "", 0)
	behind.wantExists(t, "/m", false)
	behind.create(t, "/own", "", 0)
	behind.wantExists(t, "/own", true)
	behind.wantExists(t, "/m", true)
	ahead.create(t, "/late", "", 0)
	cluster.SetLag(others[0], 5*time.Second)
	behind.wantExists(t, "/late", false)
	cluster.Advance(5 * time.Second)
	behind.wantExists(t, "/late", true)
	ahead.create(t, "/last", "", 0)
	cluster.SetLag(others[0], 0)
	behind.wantExists(t, "/last", true)

	cluster.SetLag(leader, time.Hour)
	if next, _ := followers(t, cluster); next == leader {
		t.Error("the member that lags leads")
	}
}

// A client that has seen more than a server knows is turned away by it.
func TestLaggingServerRefusesNewerClient(t *testing.T) {
	t.Parallel()
	cluster := curatortest.NewClusterT(t, 3)
	leader, others := followers(t, cluster)
	cluster.SetLag(others[0], -1)
	client := connect(t, leader.Addr()+","+others[0].Addr())
	_, err := client.Create().ForPath(t.Context(), "/n", []byte("x"))
	must(t, err)
	must(t, leader.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutBefore, Count: 3}).Err())
	must(t, cluster.DropConnection(client.SessionID()))
	data, err := client.GetData().ForPath(t.Context(), "/n")
	if err != nil || string(data) != "x" {
		t.Errorf("%q, error %v", data, err)
	}
}

func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithReadOnlyMode())
	servers := cluster.Servers()
	newSession(t, servers[0].Addr()).create(t, "/n", "x", 0)
	heal := cluster.Partition(servers[1:])
	client := connect(t, servers[0].Addr(), framework.WithReadOnly())
	ctx := t.Context()
	data, err := client.GetData().ForPath(ctx, "/n")
	if err != nil || string(data) != "x" {
		t.Errorf("%q, error %v", data, err)
	}
	if _, err := client.Create().ForPath(ctx, "/m", nil); !errors.Is(err, framework.ErrNotReadOnly) {
		t.Errorf("a write: %v", err)
	}
	word, err := servers[0].FourLetterWord(ctx, "isro")
	if err != nil || word != "ro" {
		t.Errorf("%q, error %v", word, err)
	}
	heal()
	servers[0].EventuallyT(t, "a session of the quorum", func() bool {
		_, err := client.Create().WithMode(builders.Persistent).Idempotent().ForPath(ctx, "/m", nil)
		return err == nil
	})
}

func TestSessionOfAClusterExpires(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	client := connect(t, cluster.ConnectString())
	ephemeral(t, client, "/mine")
	session := client.Session()
	must(t, cluster.KillSession(session.ID()))
	<-session.Context().Done()
	if !cluster.Servers()[0].Exists("/mine") {
		t.Error("the servers have seen it")
	}
	must(t, cluster.ExpireSession(session.ID()))
	for _, s := range cluster.Servers() {
		if s.Exists("/mine") {
			t.Errorf("%s has the node", s.Addr())
		}
	}
}

func TestFrozenServerOfAClusterDoesNotHoldUpTheOthers(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	leader, others := followers(t, cluster)
	client := newSession(t, leader.Addr())
	client.create(t, "/mine", "", zk.FlagEphemeral)
	must(t, others[0].Freeze())
	cluster.Advance(time.Hour)
	if leader.Exists("/mine") {
		t.Error("a session of another server has not ended")
	}
	must(t, others[0].Thaw())
}
