//go:build linux

package cli

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// silent returns the address of a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testclient.Must(t, err)
	t.Cleanup(func() { testclient.Must(t, l.Close()) })
	return l.Addr().String()
}

// TestWaitBoundsTheConnectToo has servers that refuse connections, and such that do not answer.
func TestWaitBoundsTheConnectToo(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:1", silent(t)} {
		for args, bound := range map[string]string{
			"lock --wait 300ms /l -- true":                             "within 300ms",
			"semaphore --wait 300ms /s -- true":                        "within 300ms",
			"elect --wait 300ms /e -- true":                            "within 300ms",
			"lock --wait 1h --connect-timeout 300ms /l -- true":        "within 300ms",
			"lock --try --connect-timeout 300ms /l -- true":            "within 300ms",
			"lock --try /l -- true":                                    "within 5s",
			"semaphore --try --connect-timeout 300ms /l -- true":       "within 300ms",
			"lock --json --wait 300ms --connect-timeout 1h /l -- true": "within 300ms",
		} {
			p := launch(t, []string{"CURATOR_CONNECT=" + address}, "", strings.Fields(args)...)
			if got := p.result(); got.code != CodeNotAcquired || !strings.Contains(got.stderr, bound) {
				t.Errorf("%s: %s: %+v, want code %d and %q", address, args, got, CodeNotAcquired, bound)
			}
		}
	}
}

// TestWaitBoundsARequestWithoutAnAnswer has a server that takes the session, and answers no create.
func TestWaitBoundsARequestWithoutAnAnswer(t *testing.T) {
	for _, args := range []string{
		"lock --wait 100ms /l -- true", "semaphore --wait 100ms /l -- true", "elect --wait 100ms /l -- true",
		"lock --try --connect-timeout 100ms /l -- true",
	} {
		server := curatortest.NewServerT(t)
		hold := server.Faults().Add(curatortest.Rule{
			Ops: []string{"create", "create2", "createContainer"}, Action: curatortest.HoldRequest, Count: 1,
		})
		testclient.Must(t, hold.Err())
		p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", strings.Fields(args)...)
		testclient.Must(t, hold.Wait(testenv.Context(t)))
		if got := p.result(); got.code != CodeNotAcquired || !strings.Contains(got.stderr, "not acquired") {
			t.Errorf("%s: %+v, want code %d", args, got, CodeNotAcquired)
		}
		hold.Release()
	}
}

func TestWaitForAServerIsSaidSoon(t *testing.T) {
	t.Parallel()
	for args, json := range map[string]bool{
		"ls /": false, "lock /l -- true": false, "elect /l -- true": false, "semaphore /l -- true": false,
		"elect --http 127.0.0.1:0 /l": false, "lock --json /l -- true": true, "elect --json --http 127.0.0.1:0 /l": true,
	} {
		p := launch(t, nil, "", append(strings.Fields("--connect 127.0.0.1:1 --connect-timeout 1h"),
			strings.Fields(args)...)...)
		want := "waiting for a server of 127.0.0.1:1: 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"
		if json {
			if got := p.await("connecting").Reason; got != want {
				t.Errorf("%s: %q, want %q", args, got, want)
			}
			continue
		}
		testenv.Eventually(t, func() bool { return p.errors() == "curator: "+want+"\n" }, args+" says so")
	}
}

// TestWaitNamesTheHolder has a lock, leases and a leadership that others have.
func TestWaitNamesTheHolder(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	ctx := testenv.Context(t)
	hold, err := locks.NewInterProcessMutex(client, "/l", locks.WithLockNodeData([]byte("host-7"))).Acquire(ctx)
	testclient.Must(t, err)
	var leases []*locks.Lease
	for range 4 {
		lease, err := locks.NewInterProcessSemaphoreV2(client, "/s", 4).Acquire(ctx)
		testclient.Must(t, err)
		leases = append(leases, lease)
	}
	latch := leader.NewLeaderLatch(client, "/e", leader.WithID("host-8"))
	testclient.Must(t, latch.Start())
	leadership, err := latch.Await(ctx)
	testclient.Must(t, err)

	for args, wants := range map[string][]string{
		"lock /l -- echo started":           {"waiting for /l behind " + hold.Path() + " (host-7, holds for "},
		"semaphore -n 4 /s -- echo started": {"waiting for /s behind " + leases[0].Path() + " (", ", holds for ", ", 1 more"},
		"elect /e -- echo started":          {"waiting for /e behind " + leadership.Path() + " (host-8, leads for "},
		"elect --http 127.0.0.1:0 /e":       {"waiting for /e behind " + leadership.Path() + " (host-8, leads for "},
	} {
		p := launch(t, environ, "", strings.Fields(args)...)
		for _, want := range wants {
			testenv.Eventually(t, func() bool { return strings.Contains(p.errors(), want) }, args+": "+want)
		}
		if text := p.errors(); strings.Count(text, "\n") != 1 || p.output() != "" {
			t.Errorf("%s: %q, %q", args, text, p.output())
		}
		testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		p.wait()
	}
	p := launch(t, environ, "", "lock", "--json", "/l", "--", "echo", "started")
	if e := p.await("behind"); e.Path != "/l" || !strings.HasPrefix(e.Reason, hold.Path()+" (host-7, holds for ") {
		t.Errorf("the event: %+v", e)
	}
	testclient.Must(t, hold.Release(ctx))
	if got := p.result(); got.code != CodeOK || got.stdout != "started\n" {
		t.Errorf("when the lock is free: %+v", got)
	}
	testclient.Must(t, latch.Close())
}

// TestWaitBehindItselfIsNotSaid lets the program have the lock, and the look at the holder late.
func TestWaitBehindItselfIsNotSaid(t *testing.T) {
	server := curatortest.NewServerT(t)
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "/l", "--", "sleep", "1.5")
	if got := p.result(); got.code != CodeOK || got.stderr != "" {
		t.Errorf("got %+v", got)
	}
}

// TestWithoutQuorumHeartbeats counts the heartbeats of a command that holds a lock.
func TestWithoutQuorumHeartbeats(t *testing.T) {
	for args, want := range map[string]bool{
		"lock /x -- sleep 60": true, "lock --without-quorum-heartbeats /x -- sleep 60": false,
		"semaphore --without-quorum-heartbeats /x -- sleep 60":    false,
		"elect --without-quorum-heartbeats /x -- sleep 60":        false,
		"elect --http 127.0.0.1:0 /x":                             true,
		"elect --http 127.0.0.1:0 --without-quorum-heartbeats /x": false,
	} {
		server := curatortest.NewServerT(t)
		first := server.Faults().Add(curatortest.Rule{
			Ops: []string{map[bool]string{true: "heartbeat", false: "ping"}[want]}, Action: curatortest.HoldReply, Count: 1,
		})
		testclient.Must(t, first.Err())
		launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "",
			append([]string{"--session-timeout", "6s"}, strings.Fields(args)...)...)
		testclient.Must(t, first.Wait(testenv.Context(t)))
		first.Release()
		for _, e := range server.Trace() {
			if e.Op == "heartbeat" && !want {
				t.Errorf("%s: a heartbeat before the first ping", args)
			}
		}
	}
}
