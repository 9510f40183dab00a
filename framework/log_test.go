package framework_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// logs keeps what is logged.
type logs struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logs) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

func (l *logs) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logs) WithGroup(string) slog.Handler      { return l }

func TestLoggerGetsStatesAndPanics(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	handler := &logs{}
	client, recorded := connectRecorded(t, connect, framework.WithLogger(slog.New(handler)))
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("too much") }).
		ForPath(t.Context(), "/"))
	recorded.end(t, client)
	handler.mu.Lock()
	defer handler.mu.Unlock()
	var states []string
	panics := 0
	for _, r := range handler.records {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "state" && r.Level == slog.LevelInfo {
				states = append(states, a.Value.String())
			}
			if r.Level == slog.LevelError && strings.Contains(a.Value.String(), "too much") {
				panics++
			}
			return true
		})
	}
	if len(states) > 0 && states[0] == "SUSPENDED" { // not always "connected" first: see want
		states = states[1:]
	}
	want := []string{"CONNECTED", "SUSPENDED", "RECONNECTED", "LOST", "RECONNECTED"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states logged (-want +got):\n%s", diff)
	}
	if panics != 1 {
		t.Errorf("%d panics logged, want 1", panics)
	}
}

// quietVariable has the server of the process of TestLoggerDefaultIsSilent.
const quietVariable = "FRAMEWORK_TEST_QUIET_CONNECT"

// Without a logger nothing is written anywhere: not by go-zookeeper either.
func TestLoggerDefaultIsSilent(t *testing.T) {
	if connect := os.Getenv(quietVariable); connect != "" {
		goThroughALot(t, connect)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(testenv.Context(t), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	cmd.Env = append(os.Environ(), quietVariable+"="+testenv.ConnectString(t))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, stdout.String())
	}
	for line := range strings.Lines(stdout.String()) {
		if line != "PASS\n" && !strings.HasPrefix(line, "coverage:") {
			t.Errorf("written to stdout: %q", line)
		}
	}
	if stderr.Len() > 0 {
		t.Errorf("written to stderr: %q", stderr.String())
	}
}

func goThroughALot(t *testing.T, connect string) {
	t.Helper()
	addr, chroot := split(connect)
	proxy := proxyTo(t, addr)
	client := newClient(t, proxy.Addr()+chroot, framework.WithSessionTimeout(3*time.Second))
	recorded := record(client)
	start(t, client)
	recorded.await(t, connected)
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("in a callback") }).
		ForPath(t.Context(), "/"))
	restore := outage(proxy)
	recorded.await(t, suspended, lost)
	restore()
	recorded.await(t, reconnected)
	must(t, client.Reset())
	recorded.await(t, lost, reconnected)
	restore = proxy.Faults().AcceptSilently()
	proxy.Faults().CutAll()
	recorded.await(t, suspended, lost)
	restore()
	recorded.await(t, reconnected)
	recorded.end(t, client)

	refused := newClient(t, proxy.Addr()+chroot, framework.WithAuth("nonsense", nil))
	recorded = record(refused)
	start(t, refused)
	recorded.await(t, lost)
	recorded.end(t, refused)
}

// messages returns all messages of a level.
func (l *logs) messages(level slog.Level) (messages []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Level == level {
			messages = append(messages, r.Message)
		}
	}
	return messages
}

// A dial that has failed in one outage must not hide the reason of the next loss.
func TestLogHasEachConnectionLoss(t *testing.T) {
	t.Parallel()
	onOwnServer(t, func(t *testing.T, server testenv.Instance, dial framework.Option) {
		log := &allLogs{}
		client, recorded := connectRecorded(t, server.ConnectString(), dial, framework.WithLogger(slog.New(log)),
			framework.WithSessionTimeout(2*time.Minute)) // a busy machine takes its time to start a server
		pass(t, 2*time.Second)
		before := len(log.messages(slog.LevelWarn)) // of a slow first try
		for range 3 {
			must(t, server.Stop())
			recorded.want(t, suspended)
			pass(t, time.Second) // with failed dials
			must(t, server.Restart())
			recorded.want(t, reconnected)
			pass(t, 2*time.Second)
		}
		recorded.end(t, client)
		got := strings.Join(log.messages(slog.LevelWarn)[before:], ", ")
		once := "connection lost, cannot connect"
		if want := strings.Join([]string{once, once, once}, ", "); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		for _, line := range log.named("connection lost") {
			if !strings.Contains(line, server.Addr()) || !strings.Contains(line, "EOF") && !strings.Contains(line, "reset") {
				t.Errorf("got %s", line)
			}
		}
	})
}

// A background operation that was given up is an error line of its own only if nobody else got the error.
func TestLogHasOperationsGivenUpWithoutCallback(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		log := &allLogs{}
		client, _ := connectRecorded(t, connect, dial, framework.WithLogger(slog.New(log)),
			framework.WithRetryPolicy(retry.NTimes(0, time.Millisecond)))
		const n = 100
		unhandled := make(chan error, n+2)
		client.AddUnhandledErrorListener(onUnhandled(unhandled))
		cut(t, proxy, curatortest.CutBefore, "getData", 1)
		done := newEvents()
		for range n {
			must(t, client.GetData().InBackground(done.callback).ForPath(testenv.Context(t), "/"))
		}
		failed := 0
		for range n {
			if receive(t, done).Err != nil {
				failed++
				receive(t, unhandled) // the listeners get it all the same
			}
		}
		if failed == 0 {
			t.Fatal("no operation has failed")
		}
		if got := log.messages(slog.LevelError); len(got) > 0 {
			t.Errorf("%d operations have failed, error lines %q", failed, got)
		}
		cut(t, proxy, curatortest.CutBefore, "exists", 1)
		must(t, client.CheckExists().InBackground(nil).ForPath(testenv.Context(t), "/"))
		receive(t, unhandled)
		if got := log.messages(slog.LevelError); len(got) != 1 {
			t.Errorf("error lines of an operation without a callback: %q", got)
		}
	})
}
