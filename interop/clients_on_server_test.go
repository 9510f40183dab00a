package interop_test

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// cliCommands are the commands of Apache ZooKeeper's command line that need no ensemble and no wait.
const cliCommands = `
create /cli
create /cli/a one
create -s /cli/s- two
create -e /cli/e three
create -c /cli/c four
create -t 600000 /cli/t five
create /cli/a again
create /cli/none/below
stat /cli/a
stat -w /cli/a
get -s /cli/a
set /cli/a six
set -v 0 /cli/a seven
set -s -v 1 /cli/a eight
get /cli/a
get /cli/nowhere
ls /cli
ls -s /cli
ls -R /cli
ls -R /zookeeper
getAllChildrenNumber /cli
getAllChildrenNumber /zookeeper
getEphemerals
getEphemerals /cli
getEphemerals /elsewhere
getAcl /cli/a
getAcl -s /cli/a
addauth digest user:password
create /cli/closed x auth::cdrwa
getAcl /cli/closed
setAcl -s /cli/a world:anyone:cr
set /cli/a nine
setAcl -v 7 /cli/c world:anyone:r
whoami
addWatch -m PERSISTENT_RECURSIVE /cli
create /cli/watched
set /cli/watched x
delete /cli/watched
removewatches /cli
create /cli/unwatched
get -w /cli/unwatched
set /cli/unwatched x
ls -w /cli
delete /cli/unwatched
sync /cli
setquota -n 100 /cli
delquota -n /cli
delquota /cli
listquota /cli
delete -v 5 /cli/c
delete /cli
delete /cli/a
delete /cli/nowhere
config
reconfig -remove 1
deleteall /cli
delete /zookeeper/config
ls /
version
addauth nonsense x
quit
`

// What a server and a moment have for themselves.
var (
	cliDates = regexp.MustCompile(`(?m)^([cm]time) = .*$`)
	cliZxids = regexp.MustCompile(`(?m)^(\w*[zZ]xid|ephemeralOwner) = 0x[0-9a-f]+$`)
)

// cliSaid is the output of the command line. The events come from another thread, anywhere between the lines.
type cliSaid struct {
	Out, Err, Events []string
}

// TestCommandLineOnEitherServer compares the output of Apache ZooKeeper's command line for both servers.
func TestCommandLineOnEitherServer(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	classPath, err := interop.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	real, err := curatortest.NewRealServer() // with an empty root
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	}()
	version := curatortest.Version38
	if testenv.VersionOf(t, real).AtLeast(testenv.Version{3, 9, 0}) {
		version = curatortest.Version39
	}
	memory := curatortest.NewServerT(t, curatortest.WithVersion(version))
	run := func(addr string) (said cliSaid) {
		cmd := exec.CommandContext(testenv.Context(t), "java", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jline.disable=true",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classPath,
			"org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", addr)
		cmd.Stdin = strings.NewReader(cliCommands)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Logf("the command line ends with %v", err)
		}
		mask := func(text string) string {
			text = strings.ReplaceAll(text, addr, "the server")
			text = strings.Replace(text, "ip: 127.0.0.1\ndigest: user\n", "digest: user\nip: 127.0.0.1\n", 1) // in no order
			return cliZxids.ReplaceAllString(cliDates.ReplaceAllString(text, "$1"), "$1")
		}
		said.Err = strings.Split(mask(stderr.String()), "\n")
		for line := range strings.Lines(mask(stdout.String())) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, "WatchedEvent state:Closed "): // it may have ended before it says so
			case strings.HasPrefix(line, "WatchedEvent "):
				said.Events = append(said.Events, line)
			case line != "" && line != "WATCHER::":
				said.Out = append(said.Out, line)
			}
		}
		return said
	}
	want, got := run(real.Addr()), run(memory.Addr())
	for _, sample := range []string{"/cli/s-0000000001", "eight", "numChildren = 5"} {
		if !slices.Contains(want.Out, sample) {
			t.Errorf("no %s in what it says of Apache ZooKeeper: %q", sample, want)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-real +in memory)\n%s", diff)
	}
}

// TestPlainLibraryOnEitherServer has go-zookeeper by itself use the server.
func TestPlainLibraryOnEitherServer(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]testenv.Instance{
		"the tests' own": testenv.Server(t),
		"in memory":      curatortest.NewServerT(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plainLibrary(t, server)
		})
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// plain is a connection of go-zookeeper, without our library around it.
type plain struct {
	*zk.Conn
	t      *testing.T
	states chan zk.State
}

// connectPlain connects, and waits for a session.
func connectPlain(t *testing.T, server testenv.Instance) *plain {
	t.Helper()
	p := &plain{t: t, states: make(chan zk.State, 100)}
	conn, events, err := zk.Connect([]string{server.Addr()}, 20*time.Second, zk.WithLogger(silent{}),
		zk.WithEventCallback(func(ev zk.Event) {
			if ev.Type == zk.EventSession {
				p.states <- ev.State
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	p.Conn = conn
	t.Cleanup(func() {
		conn.Close()
		for range events {
			continue // until its goroutines have ended
		}
	})
	p.await(zk.StateHasSession)
	return p
}

// await waits until the connection reaches the state.
func (p *plain) await(state zk.State) {
	p.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		select {
		case got := <-p.states:
			if got == state {
				return
			}
		case <-limit.C:
			p.t.Fatalf("not in time: %v", state)
		}
	}
}

func plainLibrary(t *testing.T, server testenv.Instance) {
	t.Helper()
	p, other := connectPlain(t, server), connectPlain(t, server)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fails := func(want, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
	fires := func(watch <-chan zk.Event, want zk.EventType, path string) {
		t.Helper()
		select {
		case ev := <-watch:
			if ev.Type != want || ev.Path != path || ev.Err != nil {
				t.Errorf("event %+v, not %v of %s", ev, want, path)
			}
		case <-testenv.Context(t).Done():
			t.Fatalf("no event %v of %s", want, path)
		}
	}
	anyone := zk.WorldACL(zk.PermAll)

	// Nodes, and the watches of another.
	there, _, created, err := other.ExistsW("/plain")
	if must(nil, err); there {
		t.Error("it is there before it is made")
	}
	must(p.Create("/plain", []byte("x"), 0, anyone))
	fires(created, zk.EventNodeCreated, "/plain")
	_, err = p.Create("/plain", nil, 0, anyone)
	fails(zk.ErrNodeExists, err)
	_, _, changed, err := other.GetW("/plain")
	must(nil, err)
	_, _, gained, err := other.ChildrenW("/plain")
	must(nil, err)
	stat, err := p.Set("/plain", []byte("y"), 0)
	if must(nil, err); stat.Version != 1 || stat.DataLength != 1 {
		t.Errorf("set: %+v", stat)
	}
	fires(changed, zk.EventNodeDataChanged, "/plain")
	for _, want := range []string{"/plain/e-0000000000", "/plain/e-0000000001"} {
		got, err := p.Create("/plain/e-", nil, zk.FlagEphemeral|zk.FlagSequence, anyone)
		if must(nil, err); got != want {
			t.Errorf("created %s, not %s", got, want)
		}
	}
	fires(gained, zk.EventNodeChildrenChanged, "/plain")
	_, stat, err = other.Exists("/plain/e-0000000000")
	if must(nil, err); stat.EphemeralOwner != p.SessionID() {
		t.Errorf("belongs to %x, not %x", stat.EphemeralOwner, p.SessionID())
	}
	_, err = p.Create("/plain/e-0000000000/child", nil, 0, anyone)
	fails(zk.ErrNoChildrenForEphemerals, err)
	must(p.CreateTTL("/plain/ttl", nil, zk.FlagTTL, anyone, time.Hour))
	must(p.CreateContainer("/plain/container", nil, zk.FlagContainer, anyone))

	// All or nothing.
	answers, err := p.Multi(
		&zk.CreateRequest{Path: "/plain/m", Acl: anyone},
		&zk.SetDataRequest{Path: "/plain/m", Data: []byte("z"), Version: 0},
		&zk.CheckVersionRequest{Path: "/plain", Version: 0},
		&zk.DeleteRequest{Path: "/plain/m", Version: -1},
	)
	if fails(zk.ErrBadVersion, err); len(answers) != 4 || answers[0].Error != nil || answers[2].Error != zk.ErrBadVersion {
		t.Errorf("answers %+v", answers)
	}
	_, _, err = p.Get("/plain/m")
	fails(zk.ErrNoNode, err)
	answers, err = p.Multi(
		&zk.CreateRequest{Path: "/plain/m-", Acl: anyone, Flags: zk.FlagSequence},
		&zk.SetDataRequest{Path: "/plain", Data: []byte("z"), Version: 1},
	)
	if must(nil, err); answers[0].String != "/plain/m-0000000004" || answers[1].Stat.Version != 2 {
		t.Errorf("answers %+v", answers)
	}

	// Nodes that need the password.
	must(p.Create("/plain/closed", []byte("secret"), 0, zk.DigestACL(zk.PermAll, "user", "password")))
	_, _, err = p.Get("/plain/closed")
	fails(zk.ErrNoAuth, err)
	must(nil, p.AddAuth("digest", []byte("user:password")))
	_, _, err = p.Get("/plain/closed")
	must(nil, err)
	acl, stat, err := p.GetACL("/plain/closed")
	if must(nil, err); stat.Aversion != 0 || !cmp.Equal(acl, zk.DigestACL(zk.PermAll, "user", "password")) {
		t.Errorf("%+v, %+v", acl, stat)
	}
	_, err = other.Set("/plain/closed", nil, -1)
	fails(zk.ErrNoAuth, err)
	must(p.SetACL("/plain/closed", anyone, 0))
	_, err = other.Sync("/plain")
	must(nil, err)
	must(other.Set("/plain/closed", nil, -1))

	// The recipe that comes with it.
	lock, theirs := zk.NewLock(p.Conn, "/plain/lock", anyone), zk.NewLock(other.Conn, "/plain/lock", anyone)
	must(nil, lock.Lock())
	locked := make(chan error, 1)
	go func() { locked <- theirs.Lock() }()
	must(nil, lock.Unlock())
	must(nil, <-locked)
	must(nil, theirs.Unlock())

	// A new connection keeps the session, its watches and its identities.
	_, _, watch, err := p.GetW("/plain")
	must(nil, err)
	_, _, missed, err := p.ExistsW("/plain/new")
	must(nil, err)
	session := p.SessionID()
	must(nil, server.DropConnection(session))
	p.await(zk.StateDisconnected)
	must(other.Create("/plain/new", nil, 0, anyone))
	fires(missed, zk.EventNodeCreated, "/plain/new")
	must(other.Set("/plain", nil, -1))
	fires(watch, zk.EventNodeDataChanged, "/plain")
	if p.SessionID() != session {
		t.Error("another session")
	}

	// A session that has ended is followed by another, and its nodes are gone.
	_, _, gone, err := other.ExistsW("/plain/e-0000000000")
	must(nil, err)
	must(nil, server.ExpireSession(session))
	fires(gone, zk.EventNodeDeleted, "/plain/e-0000000000")
	p.await(zk.StateExpired)
	p.await(zk.StateHasSession)
	if p.SessionID() == session {
		t.Error("no other session")
	}
	children, _, err := p.Children("/plain")
	must(nil, err)
	slices.Sort(children)
	if want := []string{"closed", "container", "lock", "m-0000000004", "new", "ttl"}; !slices.Equal(children, want) {
		t.Errorf("children %q, not %q", children, want)
	}
	for _, child := range children {
		must(nil, p.Delete("/plain/"+child, -1))
	}
	must(nil, p.Delete("/plain", -1))
}
