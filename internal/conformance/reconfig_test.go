package conformance_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// reconfigFile has what Apache ZooKeeper answers.
const reconfigFile = "testdata/reconfig.golden"

var reconfigOptions = []curatortest.Option{curatortest.WithReconfig(), curatortest.WithSuperUser(superUser)}

// TestReconfig reconfigures both kinds of clusters.
func TestReconfig(t *testing.T) {
	t.Parallel()
	const members = 3
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) {
			t.Parallel()
			opts := []curatortest.ServerOption{curatortest.WithVersion(r.version)}
			for _, o := range reconfigOptions {
				opts = append(opts, o)
			}
			cluster := curatortest.NewClusterT(t, members, opts...)
			leader, err := cluster.Leader()
			if err != nil {
				t.Fatal(err)
			}
			servers := []configured{leader}
			for _, s := range cluster.Servers() {
				if s != leader {
					servers = append(servers, s)
				}
			}
			checkReconfig(t, servers, false)
		})
	}
	t.Run("real", func(t *testing.T) {
		testenv.RequireReal(t)
		t.Parallel()
		var opts []curatortest.RealOption
		for _, o := range reconfigOptions {
			opts = append(opts, o)
		}
		cluster, err := curatortest.NewRealCluster(members, opts...)
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
		servers := []configured{leader}
		for _, s := range cluster.Servers() {
			if s != leader {
				servers = append(servers, s)
			}
		}
		checkReconfig(t, servers, *update)
	})
}

// TestReconfigAlone asks servers that stand alone.
func TestReconfigAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts []curatortest.Option
		want jute.Code
	}{
		{"by default", nil, jute.CodeReconfigDisabled},
		{"where it is enabled", reconfigOptions, jute.CodeUnimplemented},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T, addr string) {
				t.Helper()
				c := connect(t, addr, sessionTimeout)
				a, err := c.request(&jute.Request{Op: jute.OpReconfig, Reconfig: &jute.Reconfig{ConfigID: 7}})
				if err != nil || a.Code != tt.want {
					t.Errorf("code %v, error %v, want %v", a.Code, err, tt.want)
				}
				c.ping(t)
			}
			t.Run("in process", func(t *testing.T) {
				var opts []curatortest.ServerOption
				for _, o := range tt.opts {
					opts = append(opts, o)
				}
				check(t, curatortest.NewServerT(t, opts...).Addr())
			})
			t.Run("real", func(t *testing.T) {
				testenv.RequireReal(t)
				var opts []curatortest.RealOption
				for _, o := range tt.opts {
					opts = append(opts, o)
				}
				check(t, curatortest.NewRealServerT(t, opts...).Addr())
			})
		})
	}
}

// configured is a server of a cluster.
type configured interface {
	Addr() string
	ID() int
	Spec() string
}

func checkReconfig(t *testing.T, servers []configured, update bool) {
	t.Helper()
	r := &reconfigurer{TB: t, servers: servers}
	r.play()
	got := strings.Join(r.received, "\n") + "\n"
	if update {
		if err := os.WriteFile(reconfigFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(reconfigFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("received (-want +got)\n%s", diff)
	}
}

// reconfigurer writes down what it does and receives. The servers are the leader, called S0, and two others, whose
// numbers are those of the run.
type reconfigurer struct {
	testing.TB
	servers  []configured
	conn     *conn
	version  int64 // of the last configuration
	received []string
}

func (r *reconfigurer) note(format string, args ...any) {
	r.received = append(r.received, fmt.Sprintf(format, args...))
}

// named puts the names of this test in place of numbers and addresses.
func (r *reconfigurer) named(text string) string {
	for i, s := range r.servers {
		id, spec, _ := strings.Cut(s.Spec(), "=")
		spec, client, _ := strings.Cut(spec, ";")
		text = strings.ReplaceAll(text, id+"=", fmt.Sprintf("server.S%d=", i))
		text = strings.ReplaceAll(text, strings.TrimSuffix(spec, ":participant"), fmt.Sprintf("A%d", i))
		text = strings.ReplaceAll(text, client, fmt.Sprintf("C%d", i))
	}
	return text
}

// spec is the line of a server with a role.
func (r *reconfigurer) spec(i int, role string) string {
	spec, client, _ := strings.Cut(r.servers[i].Spec(), ";")
	return strings.TrimSuffix(spec, ":participant") + ":" + role + ";" + client
}

func (r *reconfigurer) id(i int) string { return strconv.Itoa(r.servers[i].ID()) }

func (r *reconfigurer) connect(i int) {
	r.Helper()
	r.conn = connect(r, r.servers[i].Addr(), sessionTimeout)
}

func (r *reconfigurer) asSuper(i int) {
	r.Helper()
	r.connect(i)
	if _, err := r.conn.ask(jute.OpAuth,
		jute.AppendAuth(nil, &jute.Auth{Scheme: schemeDigest, Auth: []byte(superUser)})); err != nil {
		r.Fatal(err)
	}
}

var versionForm = regexp.MustCompile(`version=([0-9a-f]+)$`)

// config puts a configuration into words. The three servers are sorted among themselves: the numbers of this run decide
// their order.
func (r *reconfigurer) config(data []byte, zxid, mzxid int64) string {
	text := string(data)
	found := versionForm.FindStringSubmatch(text)
	if found == nil {
		return fmt.Sprintf("%q", text)
	}
	v, err := strconv.ParseInt(found[1], 16, 64)
	if err != nil {
		r.Fatal(err)
	}
	is := "another"
	switch {
	case v == mzxid && v == zxid:
		is = "the zxid"
	case v == mzxid && v&(1<<32-1) == 0:
		is = "that of the epoch"
	case v == mzxid:
		is = "that of the change"
	}
	r.version = v
	lines := strings.Split(versionForm.ReplaceAllString(text, ""), "\n")
	var places []int
	var ours []string
	for i, line := range lines {
		if lines[i] = r.named(line); strings.HasPrefix(lines[i], "server.S") {
			places, ours = append(places, i), append(ours, lines[i])
		}
	}
	slices.Sort(ours)
	for i, at := range places {
		lines[at] = ours[i]
	}
	return strings.Join(lines, " ") + "version is " + is
}

func (r *reconfigurer) change(what string, c jute.Reconfig) {
	r.Helper()
	a, err := r.conn.request(&jute.Request{Op: jute.OpReconfig, Reconfig: &c})
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
	if a.Xid == jute.XidNotification {
		e, err := jute.DecodeWatcherEvent(a.body)
		if err != nil {
			r.Fatal(err)
		}
		r.note("%s: %v %s", what, e.Type, e.Path)
		if a, err = r.conn.readAnswer(); err != nil {
			r.Fatalf("%s: %v", what, err)
		}
	}
	if a.Code != jute.CodeOK {
		r.note("%s: %v", what, a.Code)
		return
	}
	var reply jute.Reply
	if err := jute.DecodeReply(jute.OpReconfig, a.body, &reply); err != nil {
		r.Fatal(err)
	}
	r.note("%s: %s, v %d av %d len %t", what, r.config(reply.Data, a.Zxid, reply.Stat.Mzxid), reply.Stat.Version,
		reply.Stat.Aversion, int(reply.Stat.DataLength) == len(reply.Data))
}

func (r *reconfigurer) join(what string, servers ...string) {
	r.Helper()
	r.change("join "+what, jute.Reconfig{Joining: strings.Join(servers, ","), ConfigID: -1})
}

func (r *reconfigurer) leave(what string, ids ...string) {
	r.Helper()
	r.change("leave "+what, jute.Reconfig{Leaving: strings.Join(ids, ","), ConfigID: -1})
}

func (r *reconfigurer) members(what string, servers ...string) {
	r.Helper()
	r.change("members "+what, jute.Reconfig{NewMembers: strings.Join(servers, ","), ConfigID: -1})
}

// read reads the configuration, after a sync.
func (r *reconfigurer) read(watch bool) {
	r.Helper()
	const path = "/zookeeper/config"
	r.conn.must(r, jute.Request{Op: jute.OpSync, Path: path})
	reply := r.conn.must(r, jute.Request{Op: jute.OpGetData, Path: path, Watch: watch})
	s := reply.Stat
	r.note("read: %s, c %d p %d v %d cv %d av %d", r.config(reply.Data, 0, s.Mzxid), s.Czxid, s.Pzxid, s.Version,
		s.Cversion, s.Aversion)
}

// awaitMode waits until a server has one of the modes.
func (r *reconfigurer) awaitMode(i int, modes ...string) {
	r.Helper()
	const pause = 20 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	last := ""
	for range time.Minute / pause {
		for _, mode := range modes {
			if strings.Contains(last, "Mode: "+mode+"\n") {
				r.note("S%d is %s", i, strings.Join(modes, " or "))
				return
			}
		}
		<-tick.C
		if c, err := dial(r.servers[i].Addr()); err == nil {
			if _, err = c.Write([]byte("srvr")); err == nil {
				last, _ = readText(c) //nolint:errcheck // the server is between two modes
			}
			c.Close() //nolint:errcheck // it has been read to its end
		}
	}
	r.Fatalf("server S%d is not %v: %s", i, modes, last)
}

const someObserver = "server.100=127.0.0.1:1:2:observer;127.0.0.1:3"

func (r *reconfigurer) play() {
	r.connect(1)
	r.read(false)
	r.join("without the permission", someObserver)
	r.join("without the permission and without a quorum", "server.101=127.0.0.1:1:2;3", "server.102=127.0.0.1:1:2;3",
		"server.103=127.0.0.1:1:2;3")
	r.join("without the permission nonsense", "some thing")
	r.change("from another version without the permission", jute.Reconfig{Joining: someObserver, ConfigID: 7})
	r.asSuper(1)
	r.nonsense()
	r.read(true)
	r.join("an observer", someObserver)
	r.read(true)
	r.change("from another version", jute.Reconfig{Leaving: "100", ConfigID: r.version + 1})
	r.change("from the version", jute.Reconfig{Leaving: "100", ConfigID: r.version})
	r.leave("of nobody", "77")
	r.change("nothing", jute.Reconfig{ConfigID: -1})
	r.join("forms", "server.100=127.0.0.1:1:2:Observer;3", "x.101=127.0.0.1:1:2: observer ;3",
		"102=[::]:1:2:observer;[::]:3",
		" server.103 = 127.0.0.1:1:2:observer;127.0.0.1:3 ", "server.100=127.0.0.2:1:2:observer;4")
	r.leave("forms", " 100", "101 ", "", "102,,103")
	r.join("in the order of a hash table", "server.9=127.0.0.1:1:2:observer;3", "server.100=127.0.0.1:1:2:observer;4",
		"server.22=127.0.0.1:1:2:observer;5", "server.37=127.0.0.1:1:2:observer;6", "server.16=127.0.0.1:1:2:observer;7",
		"server.15=127.0.0.1:1:2:observer;8",
		"server.14=127.0.0.1:1:2:observer;9")
	r.read(false)
	r.leave("half of them", "9", "100", "22")
	r.join("again", "server.9=127.0.0.1:1:2:observer;3", "server.22=127.0.0.1:1:2:observer;5")
	r.members("all three", r.spec(2, "participant"), r.spec(0, "participant"), r.spec(1, "participant"))
	r.members("and comments", "#x", " "+r.spec(2, "participant"), r.spec(0, "participant"), "", "version=7",
		strings.Replace(r.spec(1, "participant"), "=", " : ", 1))
	r.join("a voter who is not there", "server.104=127.0.0.1:1:2:participant;3")
	r.read(false)
	r.asSuper(0)
	r.join("the same through the leader", "server.104=127.0.0.1:1:2:participant;3")
	r.asSuper(1)
	r.join("two more", "server.105=127.0.0.1:1:2:participant;3", "server.106=127.0.0.1:1:2:participant;3")
	r.leave("of the voter who is not there", "104")
	r.leave("of S2", r.id(2))
	r.asSuper(2)
	r.read(false)
	r.conn.create(r, "/by-one-who-has-left", persistent)
	r.leave("of S1 through S2, which has left", r.id(1))
	r.join("of both again", r.servers[1].Spec(), r.servers[2].Spec())
	r.asSuper(1)
	r.join("of S2 as an observer", r.spec(2, "observer"))
	r.awaitMode(2, "observer")
	r.asSuper(2)
	r.read(false)
	observed := r.conn
	r.asSuper(1) // the client of S2 may lose the answer
	r.join("of S2 with a vote", r.spec(2, "participant"))
	observed.awaitEnd(r)
	r.awaitMode(2, "follower")
	r.asSuper(1)
	r.read(false)
	r.leave("of all", r.id(0), r.id(1), r.id(2))
	r.conn.create(r, "/before", persistent)
	if _, err := r.conn.request(&jute.Request{
		Op: jute.OpReconfig, Reconfig: &jute.Reconfig{Leaving: r.id(0), ConfigID: -1},
	}); err == nil { // the answer may be lost
		r.conn.awaitEnd(r)
	}
	r.awaitMode(1, "leader", "follower")
	r.awaitMode(2, "leader", "follower")
	r.asSuper(1)
	r.read(false)
	r.conn.must(r, jute.Request{Op: jute.OpExists, Path: "/before"})
}

// nonsense sends what cannot be a configuration.
func (r *reconfigurer) nonsense() {
	for _, text := range []string{
		"some thing", "server.100", "server.100=", "server.100=127.0.0.1", "server.100=127.0.0.1:1;3",
		"server.100=127.0.0.1:1:2:observer",
		"server.100=127.0.0.1:1:2:observer;", "server.100=127.0.0.1:1:2:witness;3", "server.100=127.0.0.1:1:1:observer;3",
		"server.100=127.0.0.1:x:2:observer;3",
		"server.100=127.0.0.1:1:x:observer;3", "server.100=127.0.0.1:1:2:observer;x",
		"server.100=127.0.0.1:1:2:observer;127.0.0.1:x",
		"server.100=127.0.0.1:1:2:observer;127.0.0.1:3:4", "server.100=127.0.0.1:1:2:observer;3;4",
		"server.100=127.0.0.1:1:2:observer:x;3",
		"server.100=127.0.0.1:70000:2:observer;3", "server.100=127.0.0.1:1:-2:observer;3",
		"server.100=127.0.0.1:1:2:observer;70000",
		"server.x=127.0.0.1:1:2:observer;3", "server.=127.0.0.1:1:2:observer;3", "=127.0.0.1:1:2:observer;3",
		"server.100=127.0.0.1=1:2:observer;3",
		"server.100=127.0.0.1:1:2:observer|127.0.0.2:1:2:observer;3", "server.100=[::1:1:2:observer;3", "server.100=;",
		"server.100=;3",
	} {
		r.join(text, text)
		r.members(text, r.servers[0].Spec(), r.servers[1].Spec(), text)
	}
	for _, text := range []string{"x", "1.0", "server.1", "-"} {
		r.leave(text, text)
	}
	r.members("without a vote", "server.100=127.0.0.1:1:2:observer;3")
	r.members("with another key", "x=y", r.servers[0].Spec())
	r.members("with a bad version", "version=x", r.servers[0].Spec())
	r.join("two at one place", "server.100=10.0.0.1:1:2:observer;3", "server.101=10.0.0.1:1:4:observer;5")
}
