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
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
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
	client := newClient(t, connect, framework.WithLogger(slog.New(handler)))
	recorded := record(client)
	start(t, client)
	recorded.want(t, connected)
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
	want := []string{"CONNECTED", "SUSPENDED", "RECONNECTED", "LOST", "RECONNECTED"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states logged (-want +got):\n%s", diff)
	}
	if panics != 1 {
		t.Errorf("%d panics logged, want 1", panics)
	}
}

// quietVariable has the server of the process of TestNothingIsWrittenToTheStandardStreams.
const quietVariable = "FRAMEWORK_TEST_QUIET_CONNECT"

// Without a logger nothing is written anywhere: not by go-zookeeper either.
func TestNothingIsWrittenToTheStandardStreams(t *testing.T) {
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
	recorded.want(t, connected, lost)
	recorded.end(t, refused)
}
