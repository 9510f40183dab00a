package curatortest_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

func TestRealServerRestart(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	addr := server.Addr()
	if server.ConnectString() != addr || server.ID() != 0 || server.Spec() != "" {
		t.Errorf("at %s: connect string %s, ID %d, spec %q", addr, server.ConnectString(), server.ID(), server.Spec())
	}
	newSession(t, addr).create(t, "/data", "kept", 0)

	for _, tt := range []struct {
		name string
		end  func() error
	}{
		{"Stop", server.Stop},
		{"Kill", server.Kill},
		{"Kill of what does not run", func() error { return errors.Join(server.Kill(), server.Kill()) }},
		{"of a server that runs", func() error { return nil }},
		{"of a frozen server", server.Freeze},
	} {
		pid := server.PID()
		must(t, tt.end())
		must(t, server.Restart())
		if got := server.PID(); got == 0 || got == pid {
			t.Errorf("%s: process %d after %d", tt.name, got, pid)
		}
		if server.Addr() != addr {
			t.Errorf("%s: at %s, was at %s", tt.name, server.Addr(), addr)
		}
		newSession(t, addr).wantData(t, "/data", "kept")
	}
}

func TestRealServerStopped(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server := newServer(t)
	must(t, server.Stop())
	if server.PID() != 0 {
		t.Errorf("process %d", server.PID())
	}
	for what, err := range map[string]error{
		"Freeze":       server.Freeze(),
		"Thaw":         server.Thaw(),
		"AwaitServing": server.AwaitServing(ctx),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := server.FourLetterWord(ctx, "srvr"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a question: %v", err)
	}
	must(t, server.Launch())
	must(t, server.AwaitServing(ctx))
}

func TestRealServerFreeze(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server := newServer(t)
	s := newSession(t, server.Addr())

	must(t, server.Freeze())
	answered := make(chan error, 1)
	go func() {
		_, _, err := s.Get("/")
		answered <- err
	}()
	ask, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if answer, err := server.FourLetterWord(ask, "srvr"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server says %q, error %v", answer, err)
	}
	select {
	case err := <-answered:
		t.Errorf("a frozen server has answered: %v", err)
	default:
	}

	must(t, server.Freeze()) // again: nothing
	must(t, server.Thaw())
	if err := <-answered; err != nil { // on the connection that was there
		t.Error(err)
	}

	must(t, syscall.Kill(server.PID(), syscall.SIGKILL))
	testenv.Eventually(t, func() bool { return server.Freeze() != nil }, "what has ended cannot be frozen")
}

func TestRealServerClose(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server := newServer(t)
	conf, err := server.FourLetterWord(ctx, "conf")
	must(t, err)
	_, dir, _ := strings.Cut(conf, "dataDir=")
	dir, _, _ = strings.Cut(dir, "/data/")
	if _, err := os.Stat(dir); err != nil || !strings.Contains(dir, "curatortest-") {
		t.Fatalf("directory %s: %v", dir, err)
	}

	must(t, server.Close())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
	must(t, server.Close())
	if server.Restart() == nil || server.Launch() == nil {
		t.Error("a closed server starts")
	}
	must(t, server.Stop())
	if server.PID() != 0 {
		t.Errorf("process %d", server.PID())
	}
}

func TestRealServerOptions(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server := newServer(t,
		curatortest.WithTickTime(150*time.Millisecond),
		curatortest.WithConfig("maxSessionTimeout", "4321"),
		curatortest.WithSystemProperty("user.name", "somebody"))
	conf, err := server.FourLetterWord(ctx, "conf")
	must(t, err)
	environment, err := server.FourLetterWord(ctx, "envi")
	must(t, err)
	for _, want := range []string{"tickTime=150\n", "maxSessionTimeout=4321\n", "user.name=somebody\n"} {
		if !strings.Contains(conf+environment, want) {
			t.Errorf("no %q in %s%s", want, conf, environment)
		}
	}
}

func TestRealServerThatCannotStart(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	server, err := curatortest.NewRealServer(curatortest.WithConfig("tickTime", "soon"))
	if err == nil {
		closeServer(t, server)
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), "soon") { // what the server has printed
		t.Errorf("error: %v", err)
	}
}

func TestRealServerEndsNodes(t *testing.T) {
	t.Parallel()
	s := newSession(t, newServer(t, curatortest.WithSweepInterval(200*time.Millisecond)).Addr())
	acl := zk.WorldACL(zk.PermAll)
	_, err := s.CreateContainer("/container", nil, zk.FlagContainer, acl)
	must(t, err)
	s.create(t, "/container/child", "", 0)
	must(t, s.Delete("/container/child", -1))
	_, err = s.CreateTTL("/ttl", nil, zk.FlagTTL, acl, time.Millisecond)
	must(t, err)
	testenv.Eventually(t, func() bool {
		children, _, err := s.Children("/")
		must(t, err)
		return slices.Equal(children, []string{"zookeeper"})
	}, "the empty container and the node with a time to live are gone")
}
