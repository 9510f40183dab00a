//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

// program is a run of the program in a process of its own.
type program struct {
	tb     testing.TB
	cmd    *exec.Cmd
	events chan run.Event // of --json
	done   chan struct{}

	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	line           []byte // the beginning of one of the standard error
}

// Write takes the standard output.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// launch starts the program with arguments, and ends it with the test.
func launch(tb testing.TB, environ []string, stdin string, args ...string) *program {
	tb.Helper()
	return launchAs(tb, nil, environ, stdin, args...)
}

// launchAs starts the program with attributes of its process.
func launchAs(
	tb testing.TB, sys *syscall.SysProcAttr, environ []string, stdin string, args ...string,
) *program {
	tb.Helper()
	p := &program{tb: tb, events: make(chan run.Event, 1000), done: make(chan struct{})}
	self, err := os.Executable()
	testclient.Must(tb, err)
	p.cmd = exec.Command(self, args...)
	// The race detector waits for a second before the end of a program.
	p.cmd.Env = append(append(os.Environ(), asProgram, "GORACE=atexit_sleep_ms=0"), environ...)
	p.cmd.SysProcAttr = sys
	p.cmd.Stdin = strings.NewReader(stdin)
	p.cmd.Stdout = p // read while it runs
	p.cmd.Stderr = (*eventWriter)(p)
	p.cmd.WaitDelay = 10 * time.Second // a process that the program should have killed may have its streams
	testclient.Must(tb, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // its code is what counts
		close(p.events)
		close(p.done)
	}()
	tb.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		p.wait()
	})
	return p
}

// eventWriter takes the standard error, and sends the events.
type eventWriter program

func (w *eventWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stderr.Write(b)
	w.line = append(w.line, b...)
	for {
		line, rest, found := bytes.Cut(w.line, []byte("\n"))
		if !found {
			return len(b), nil
		}
		w.line = rest
		var e run.Event
		if json.Unmarshal(line, &e) == nil {
			w.events <- e
		}
	}
}

// await returns the next event with a name.
func (p *program) await(name string) run.Event {
	p.tb.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				p.tb.Fatalf("no event %q: %s", name, p.errors())
			}
			if e.Event == name {
				return e
			}
		case <-timeout:
			p.tb.Fatalf("no event %q within a minute: %s", name, p.errors())
		}
	}
}

// gone returns the event about the end of a hold, nil if there was none. The program has ended.
func (p *program) gone() *run.Event {
	for line := range strings.Lines(p.errors()) {
		var e run.Event
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == "gone" {
			return &e
		}
	}
	return nil
}

func (p *program) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// wait returns the exit code.
func (p *program) wait() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// result waits for the end.
func (p *program) result() result {
	code := p.wait()
	return result{code, p.output(), p.errors()}
}

func TestHoldRunsCommandWithEnvironmentAndStdin(t *testing.T) {
	for name, args := range map[string][]string{
		"lock": nil, "semaphore": {"-n", "2"}, "elect": {"--id", "me"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, connect := connected(t)
			args := append(append([]string{name}, args...), "/held", "--", "sh", "-c",
				`cat; echo " $CURATOR_LOCK_PATH $CURATOR_LOCK_TOKEN $CURATOR_SESSION_TIMEOUT $CURATOR_CONNECT"; exit 7`)
			got := launch(t, environ, "the input", args...).result()
			fields := strings.Fields(got.stdout)
			if got.code != 7 || got.stderr != "" || len(fields) != 6 || !strings.HasPrefix(got.stdout, "the input ") {
				t.Fatalf("got %+v", got)
			}
			if !strings.HasPrefix(fields[2], "/held/") {
				t.Errorf("the path is %s", fields[2])
			}
			if token, err := strconv.ParseInt(fields[3], 10, 64); err != nil || token <= 0 {
				t.Errorf("the token is %s", fields[3])
			}
			if timeout, err := strconv.Atoi(fields[4]); err != nil || timeout <= 0 || timeout > 15000 {
				t.Errorf("the session timeout is %s ms", fields[4])
			}
			if fields[5] != connect {
				t.Errorf("the servers are %s, want %s", fields[5], connect)
			}
			client := testclient.Connect(t, connect)
			stat, err := client.CheckExists().ForPath(t.Context(), fields[2])
			if err != nil || stat != nil {
				t.Errorf("%s is not released: %v %v", fields[2], stat, err)
			}
		})
	}
}

func TestHoldExitCodes(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	hold, err := locks.NewInterProcessMutex(client, "/taken").Acquire(t.Context())
	testclient.Must(t, err)
	t.Cleanup(func() { _ = hold.Release(testenv.Context(t)) }) // after the parallel tests
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{args: "lock /l -- true"},
		{args: "lock /l -- false", code: 1},
		{args: "lock /l -- sh -c kill${IFS}-9${IFS}$$", code: 137},
		{args: "lock --try /taken -- true", code: CodeNotAcquired, stderr: "others hold /taken"},
		{args: "lock --wait 5s /taken -- true", code: CodeNotAcquired, stderr: "others hold /taken"},
		{args: "lock /l -- /no/such/program", code: 127, stderr: "/no/such/program"},
		{args: "lock /l -- no-such-program", code: 127, stderr: "no-such-program"},
		{args: "lock /l -- /dev/null", code: 126, stderr: "/dev/null"},
		{args: "lock --grace 1h /l -- true", code: CodeRefused, stderr: "set --session-timeout"},
		{args: "lock --grace 1h /taken -- true", code: CodeRefused, stderr: "set --session-timeout"}, // at once
		{args: "lock --grace 2000000h /l -- true", code: CodeRefused, stderr: "set --session-timeout"},
		{args: "lock --margin 0 /l -- true", code: CodeUsage, stderr: "--margin must be positive"},
		{args: "lock --grace -1s /l -- true", code: CodeUsage, stderr: "--grace must not be negative"},
		{args: "lock --wait -1s /l -- true", code: CodeUsage, stderr: "--wait must not be negative"},
		{args: "lock --try --wait 1s /l -- true", code: CodeUsage, stderr: "try wait"},
		{args: "lock --on-lost run:/no/such/program /l -- true", code: CodeUsage, stderr: "/no/such/program"},
		{args: "lock --on-lost run: /l -- true", code: CodeUsage, stderr: "term, kill or run:CMD"},
		{args: "elect --http 127.0.0.1:0 --margin 1h /e", code: CodeRefused, stderr: "--margin"},
		{args: "elect --http 127.0.0.1:0 --valid-for 500us /e", code: CodeUsage, stderr: "--valid-for"},
		{args: "lock --on-lost what /l -- true", code: CodeUsage, stderr: "term, kill or run:CMD"},
		{args: "lock /l true", code: CodeUsage, stderr: "curator lock [flags] PATH -- COMMAND"},
		{args: "lock /l --", code: CodeUsage, stderr: "wants"},
		{args: "lock l -- true", code: CodeUsage},
		{args: "semaphore -n 0 /s -- true", code: CodeUsage, stderr: "--permits"},
		{
			args: "lock --connect 127.0.0.1:1 --connect-timeout 50ms /l -- true",
			code: CodeNotAcquired, stderr: "not connected",
		},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := launch(t, environ, "", strings.Fields(test.args)...).result()
			if got.code != test.code || !strings.Contains(got.stderr, test.stderr) {
				t.Errorf("%+v, want code %d and %q", got, test.code, test.stderr)
			}
		})
	}
}

func TestLockSignalEndsWait(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	hold, err := locks.NewInterProcessMutex(client, "/l").Acquire(t.Context())
	testclient.Must(t, err)
	marker := filepath.Join(t.TempDir(), "ran")
	p := launch(t, environ, "", "lock", "--json", "/l", "--", "touch", marker)
	p.await("waiting")
	mu := locks.NewInterProcessMutex(client, "/l")
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(t.Context())
		return err == nil && len(nodes) == 2
	}, "the program waits")
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if code := p.wait(); code != CodeNotAcquired {
		t.Errorf("code %d, want %d: %s", code, CodeNotAcquired, p.errors())
	}
	testclient.Must(t, hold.Release(t.Context()))
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command was started")
	}
	nodes, err := mu.ParticipantNodes(t.Context())
	if err != nil || len(nodes) != 0 {
		t.Errorf("left %v %v", nodes, err)
	}
}

// TestLockSessionEndsInTheLine ends the session of a program that waits. It waits on, with another one.
func TestLockSessionEndsInTheLine(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	mu := locks.NewInterProcessMutex(client, "/l")
	hold, err := mu.Acquire(t.Context())
	testclient.Must(t, err)
	mine := server.Sessions()
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "/l", "--", "echo", "started")
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(t.Context())
		return err == nil && len(nodes) == 2
	}, "the program waits")
	expireOthers(t, server, mine)
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(t.Context())
		return err == nil && len(nodes) == 2
	}, "the program waits again")
	testclient.Must(t, hold.Release(t.Context()))
	if got := p.result(); got.code != CodeOK || got.stdout != "started\n" {
		t.Errorf("got %+v", got)
	}
}

// TestLockSignalBeforeTheStartStartsNothing gets a signal while the program looks at the node of its lock.
func TestLockSignalBeforeTheStartStartsNothing(t *testing.T) {
	server := curatortest.NewServerT(t)
	held := server.Faults().Add(curatortest.Rule{
		Ops: []string{"exists"}, Path: "/l/**", Action: curatortest.HoldReply, Count: 1,
	})
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "--json", "/l", "--",
		"echo", "started")
	testclient.Must(t, held.Wait(testenv.Context(t)))
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.await("error") // before the answer
	held.Release()
	if got := p.result(); got.code != CodeNotAcquired || got.stdout != "" {
		t.Errorf("got %+v, want code %d", got, CodeNotAcquired)
	}
}

// TestLockDeletedBeforeTheStartStartsNothing deletes the node of a lock before the program looks at it.
func TestLockDeletedBeforeTheStartStartsNothing(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	look := server.Faults().Add(curatortest.Rule{
		Ops: []string{"exists"}, Path: "/l/**", Action: curatortest.HoldRequest, Count: 1,
	})
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "/l", "--", "echo", "started")
	testclient.Must(t, look.Wait(testenv.Context(t)))
	testclient.Must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(t.Context(), "/l"))
	look.Release()
	if got := p.result(); got.code != CodeLost || got.stdout != "" || !strings.Contains(got.stderr, "lost before") {
		t.Errorf("got %+v, want code %d", got, CodeLost)
	}
}

// TestLockGoesOnIfNobodyReadsItsEvents fills the standard error, which the program has with its command.
func TestLockGoesOnIfNobodyReadsItsEvents(t *testing.T) {
	environ, _ := connected(t)
	self, err := os.Executable()
	testclient.Must(t, err)
	dir := t.TempDir()
	full, got := filepath.Join(dir, "full"), filepath.Join(dir, "got")
	testclient.Must(t, syscall.Mkfifo(full, 0o600))
	reader, err := os.OpenFile(full, os.O_RDWR, 0) // and does not read
	testclient.Must(t, err)
	defer reader.Close() //nolint:errcheck // it is the end
	cmd := exec.Command(self, "lock", "--json", "/l", "--", "sh", "-c",
		`trap 'echo "$CURATOR_LOCK_PATH" >`+got+`; exit 9' USR1; head -c 1000000 /dev/zero >&2 & exec 2>/dev/null; echo up
while :; do sleep 0.05; done`)
	cmd.Env = append(append(os.Environ(), asProgram), environ...)
	cmd.Stderr = reader
	stdout, err := cmd.StdoutPipe()
	testclient.Must(t, err)
	testclient.Must(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck // it has ended
	_, err = bufio.NewReader(stdout).ReadString('\n')
	testclient.Must(t, err)
	probe, err := unix.Open(full, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	testclient.Must(t, err)
	defer unix.Close(probe) //nolint:errcheck // it is the end
	testenv.Eventually(t, func() bool {
		_, err := unix.Write(probe, []byte{0})
		return errors.Is(err, unix.EAGAIN)
	}, "the pipe is full")
	testclient.Must(t, cmd.Process.Signal(syscall.SIGUSR1))
	testenv.Eventually(t, func() bool {
		content, err := os.ReadFile(got)
		return err == nil && strings.HasPrefix(string(content), "/l/")
	}, "the command has the signal")
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("code %d", cmd.ProcessState.ExitCode())
	}
}

func TestLockForwardsSignals(t *testing.T) {
	environ, _ := connected(t)
	p := launch(t, environ, "", "lock", "--json", "/l", "--", "sh", "-c",
		`trap 'echo usr1; kill $!; exit 5' USR1; echo ready; sleep 600 & wait`)
	p.await("started")
	// A shell that has not set its trap yet dies of the signal: the output is read by this process, as it comes.
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "ready") }, "the command is ready")
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGUSR1))
	if got := p.result(); got.code != 5 || !strings.Contains(got.stdout, "usr1") {
		t.Errorf("got %+v", got)
	}
}

// TestLockWaitsOnIfAllSignalsAreIgnored has a parent that ignores all signals which would end the wait. No other signal
// does so then.
func TestLockWaitsOnIfAllSignalsAreIgnored(t *testing.T) {
	environ, connect := connected(t)
	hold, err := locks.NewInterProcessMutex(testclient.Connect(t, connect), "/l").Acquire(t.Context())
	testclient.Must(t, err)
	p := launch(t, append(environ, "CURATOR_TEST_IGNORE=1"), "", "lock", "--json", "/l", "--", "true")
	p.await("waiting")
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGWINCH)) // as of a terminal that changes its size
	testclient.Must(t, hold.Release(t.Context()))
	if code := p.wait(); code != CodeOK {
		t.Errorf("code %d: %s", code, p.errors())
	}
}

func TestLockDeletedNodeKillsAtOnce(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	p := launch(t, environ, "", "lock", "--json", "--grace", "5s", "/l", "--", "sh", "-c", `trap '' TERM; sleep 600`)
	path := p.await("acquired").Path
	p.await("started")
	testclient.Must(t, client.Delete().ForPath(t.Context(), path))
	began := time.Now()
	if code := p.wait(); code != CodeLost {
		t.Errorf("code %d, want %d: %s", code, CodeLost, p.errors())
	}
	if gone := p.gone(); gone == nil || !strings.Contains(gone.Reason, "node") { // its session has not ended
		t.Errorf("gone: %+v", gone)
	}
	t.Logf("gone after %v", time.Since(began))
}

// TestLockDeletedNodeKillsBesideAStoppedGuard has a guard that does not obey, long before the session can end.
func TestLockDeletedNodeKillsBesideAStoppedGuard(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "--json", "--session-timeout",
		"2m", "--margin", "2s", "/l", "--", "sh", "-c", `trap '' TERM; sleep 600`)
	path := p.await("acquired").Path
	testclient.Must(t, syscall.Kill(parentOf(t, p.await("started").PID), syscall.SIGSTOP))
	testclient.Must(t, client.Delete().ForPath(t.Context(), path))
	if code := p.wait(); code != CodeLost {
		t.Errorf("code %d, want %d: %s", code, CodeLost, p.errors())
	}
	gone := p.gone()
	if gone == nil || gone.SinceLoss == nil || *gone.SinceLoss > time.Minute.Milliseconds() || gone.Margin != nil ||
		gone.Reason != run.NodeDeleted {
		t.Errorf("not at once, or without the reason: %s", p.errors())
	}
}

// TestLockCommandDiesWithTheGuard has a supervisor that cannot do the work of a guard that was killed.
func TestLockCommandDiesWithTheGuard(t *testing.T) {
	environ, _ := connected(t)
	p := launch(t, environ, "", "lock", "--json", "/l", "--", "sleep", "600")
	pid := p.await("started").PID
	killed := parentOf(t, pid)
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	testenv.Eventually(t, func() bool {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/task/*/stat")
		return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(file string) bool {
			stat, err := os.ReadFile(file)
			return err == nil && !bytes.Contains(stat, []byte(") T "))
		})
	}, "the supervisor stands still")
	testclient.Must(t, syscall.Kill(killed, syscall.SIGKILL))
	testenv.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || bytes.Contains(stat, []byte(") Z ")) // the supervisor has to reap it
	}, "the command is dead")
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGCONT))
	if code := p.wait(); code != 128+int(syscall.SIGKILL) && code != CodeLost {
		t.Errorf("code %d: %s", code, p.errors())
	}
}

// TestLockCodeOfACommandThatEndedBeforeTheLoss loses the lock, and the guard, when the background alone is left.
func TestLockCodeOfACommandThatEndedBeforeTheLoss(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	deaf, may := filepath.Join(t.TempDir(), "deaf"), filepath.Join(t.TempDir(), "may")
	p := launch(t, environ, "", "lock", "--json", "--grace", "4s", "/l", "--", "sh", "-c",
		`setsid sh -c 'trap "" TERM; : >"$0"; sleep 600' "$0" &
		while ! [ -e "$0" ] || ! [ -e "$1" ]; do sleep 0.01; done; exit 3`, deaf, may)
	path := p.await("acquired").Path
	stopped := parentOf(t, p.await("started").PID)
	testclient.Must(t, os.WriteFile(may, nil, 0o600)) // its parent is known
	p.await("exited")
	testclient.Must(t, syscall.Kill(stopped, syscall.SIGSTOP))
	testclient.Must(t, client.Delete().ForPath(t.Context(), path))
	if code := p.wait(); code != 3 {
		t.Errorf("code %d, want 3: %s", code, p.errors())
	}
}

// TestLockGuardKilledInTheGraceIsLost kills the guard behind its report that the session is near its end.
func TestLockGuardKilledInTheGraceIsLost(t *testing.T) {
	t.Parallel()
	proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
	p := launch(t, []string{"CURATOR_CONNECT=" + connect}, "", "lock", "--json", "--session-timeout", "6s",
		"--grace", "1900ms", "/l", "--", "sh", "-c", `trap '' TERM; sleep 600`)
	killed := parentOf(t, p.await("started").PID)
	defer proxy.Faults().Freeze()()
	p.await("terminating")
	_ = syscall.Kill(killed, syscall.SIGKILL) // on a slow machine it has done its work
	if code := p.wait(); code != CodeLost {
		t.Errorf("code %d, want %d: %s", code, CodeLost, p.errors())
	}
}

// TestLockOutlivesItsFirstSessionTimeout has a command that runs for longer than a session without a proof lives.
func TestLockOutlivesItsFirstSessionTimeout(t *testing.T) {
	t.Parallel()
	environ, _ := connected(t)
	got := launch(t, environ, "", "lock", "--session-timeout", "5s", "--grace", "100ms", "--margin", "100ms", "/l", "--",
		"sleep", "6").result()
	if got.code != CodeOK {
		t.Errorf("got %+v", got)
	}
}

// TestLockGuardStoppedThenPartitionKillsBeforeTheEnd has a margin that no machine is busy for.
func TestLockGuardStoppedThenPartitionKillsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
	p := launch(t, []string{"CURATOR_CONNECT=" + connect}, "", "lock", "--json", "--session-timeout", "10s",
		"--grace", "100ms", "--margin", "4s", "/l", "--", "sleep", "600")
	testclient.Must(t, syscall.Kill(parentOf(t, p.await("started").PID), syscall.SIGSTOP))
	defer proxy.Faults().Freeze()()
	gone := p.await("gone")
	if gone.Margin == nil || *gone.Margin <= 0 || gone.Reason != "the guard did not stop it in time" {
		t.Errorf("too late, or for another reason: %s", p.errors())
	}
}

func TestLockBackgroundProcessesEndWithCommand(t *testing.T) {
	for _, cgroup := range []string{"true", "false"} {
		t.Run("cgroup="+cgroup, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			mark := newMark(t)
			p := launch(t, append(environ, mark), "", "lock", "--json", "--cgroup="+cgroup, "--grace", "200ms", "/l", "--",
				"sh", "-c", `setsid sh -c 'trap "" TERM; setsid sleep 600 & : >"$0"; sleep 600' "$0" & sleep 600 &
while ! [ -e "$0" ]; do sleep 0.01; done; exit 3`, filepath.Join(t.TempDir(), "deaf"))
			if code := p.wait(); code != 3 {
				t.Errorf("code %d, want 3: %s", code, p.errors())
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestLockOnLost(t *testing.T) {
	for _, test := range []struct{ name, onLost, want string }{
		{"term", "term", "got TERM"},
		{"kill", "kill", ""},
		{"run", "run:sh -c echo${IFS}ran${IFS}for${IFS}$CURATOR_LOCK_PATH;kill${IFS}$CURATOR_CHILD_PID", "ran for /"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
			p := launch(t, []string{"CURATOR_CONNECT=" + connect}, "", "lock", "--json", "--session-timeout", "4s",
				"--grace", "1s", "--margin", "1s", "--on-lost", test.onLost, "/l", "--",
				"sh", "-c", `trap 'echo got TERM' TERM; echo ready; while :; do sleep 0.05; done`)
			p.await("started")
			testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "ready") }, "the command is ready")
			thaw := proxy.Faults().Freeze()
			gone := p.await("gone")
			thaw()
			got := p.result()
			if got.code != CodeLost || !strings.Contains(got.stdout, test.want) ||
				test.want == "" && strings.Contains(got.stdout, "got") {
				t.Errorf("got %+v, want code %d and %q", got, CodeLost, test.want)
			}
			if gone.Margin == nil {
				t.Fatalf("no margin: %s", got.stderr)
			}
			t.Logf("margin %d ms", *gone.Margin)
			if *gone.Margin < 0 {
				t.Errorf("gone %d ms late", -*gone.Margin)
			}
		})
	}
}

func TestLockNestedCommandHasInnerEnvironment(t *testing.T) {
	environ, _ := connected(t)
	self, err := os.Executable()
	testclient.Must(t, err)
	got := launch(t, environ, "", "lock", "/outer", "--", self, "lock", "/inner", "--", "env").result()
	if strings.Count(got.stdout, "CURATOR_LOCK_PATH=") != 1 || !strings.Contains(got.stdout, "CURATOR_LOCK_PATH=/inner/") {
		t.Errorf("got %+v", got)
	}
}

// TestLockCommandHasTheContextOfTheFlags runs curator in the command, which is to log in as the one outside.
func TestLockCommandHasTheContextOfTheFlags(t *testing.T) {
	_, connect := connected(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	testclient.Must(t, os.WriteFile(config, []byte("current: other\ncontexts:\n  here:\n    connect: "+connect+
		"\n    auth: [\"digest:alice:wonder\"]\n  other:\n    connect: 127.0.0.1:1\n"), 0o600))
	self, err := os.Executable()
	testclient.Must(t, err)
	got := launch(t, nil, "mine", "lock", "--config", config, "--context", "here", "/l", "--", "sh", "-c",
		`"$0" create --fence /n && "$0" chmod auth::cdrwa /n && "$0" get /n`, self).result()
	if got.code != CodeOK || got.stdout != "/n\nmine" {
		t.Errorf("got %+v", got)
	}
}

// TestLockCommandHasOpenFiles passes files on, as a shell and make -j do, and nothing of curator's own.
func TestLockCommandHasOpenFiles(t *testing.T) {
	environ, _ := connected(t)
	self, err := os.Executable()
	testclient.Must(t, err)
	file := filepath.Join(t.TempDir(), "file")
	testclient.Must(t, os.WriteFile(file, nil, 0o600))
	const script = `for n in $(seq 3 30); do readlink /proc/$$/fd/$n; done`
	for _, redirection := range []string{"3<F 4<F 5<F 7<F", "4<F", "3<F", "9<F 11<F", ""} {
		list := func(command string) string {
			cmd := exec.Command("sh", "-c", command+strings.ReplaceAll(redirection, "F", file), self, script)
			cmd.Env = append(append(os.Environ(), asProgram), environ...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v, %s", redirection, err, out)
			}
			return string(out)
		}
		if diff := cmp.Diff(list(`sh -c "$1; true" `), list(`"$0" lock /l -- sh -c "$1; true" `)); diff != "" {
			t.Errorf("%s (-without a lock +with one):\n%s", redirection, diff)
		}
	}
}

func TestLockIgnoredSignalStaysIgnored(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	self, err := os.Executable()
	testclient.Must(t, err)
	p := launch(t, environ, "", "version")
	p.wait() // the environment of a program, for one that a shell starts
	cmd := exec.Command("sh", "-c", `trap '' HUP; "$0" lock /l -- sh -c 'kill -HUP $PPID $$; echo alive'`, self)
	cmd.Env = p.cmd.Env
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "alive\n" {
		t.Errorf("%v: %s", err, out)
	}
	nodes, err := locks.NewInterProcessMutex(client, "/l").ParticipantNodes(t.Context())
	if err != nil || len(nodes) != 0 {
		t.Errorf("left %v %v", nodes, err)
	}
}

// terminalOf runs a shell script on a terminal of its own, with the program as $0.
type terminalOf struct {
	t       *testing.T
	cmd     *exec.Cmd
	control *os.File
	lines   chan string
}

func onTerminal(t *testing.T, environ []string, script string) *terminalOf {
	t.Helper()
	self, err := os.Executable()
	testclient.Must(t, err)
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	testclient.Must(t, err)
	t.Cleanup(func() { _ = control.Close() }) // what is left of the script gets SIGHUP
	testclient.Must(t, unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	testclient.Must(t, err)
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	testclient.Must(t, err)
	cmd := exec.Command("sh", "-c", script, self)
	cmd.Env = append(append(os.Environ(), asProgram), environ...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testclient.Must(t, cmd.Start())
	testclient.Must(t, terminal.Close())
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(control)
		for s.Scan() {
			lines <- strings.TrimSpace(s.Text())
		}
	}()
	return &terminalOf{t, cmd, control, lines}
}

// awaits waits for a line that ends so: the terminal may have echoed ^Z before.
func (o *terminalOf) awaits(want string) {
	o.t.Helper()
	var seen []string
	timeout := time.After(time.Minute)
	for {
		select {
		case line, ok := <-o.lines:
			if seen = append(seen, line); strings.HasSuffix(line, want) {
				return
			}
			if !ok {
				o.t.Fatalf("no line %q: %q", want, seen)
			}
		case <-timeout:
			o.t.Fatalf("no line %q within a minute: %q", want, seen)
		}
	}
}

func (o *terminalOf) writes(s string) {
	o.t.Helper()
	_, err := o.control.WriteString(s)
	testclient.Must(o.t, err)
}

// TestLockCommandHasTerminal runs a shell that reads a line from a terminal, gets an interrupt from it, and leaves the
// terminal to the shell that has started curator.
func TestLockCommandHasTerminal(t *testing.T) {
	environ, _ := connected(t)
	// A shell heeds a signal between two commands. One that comes as a read begins would wait for the end of the read.
	o := onTerminal(t, environ, `"$0" lock /l -- sh -c 'trap "echo interrupted; exit 4" INT; read x; echo "got $x"
while :; do sleep 0.05; done'; echo "code $?"; read y; echo "then $y"`)
	o.writes("first\n")
	o.awaits("got first")
	o.writes("\x1a") // stops nothing: nobody could go on with what is stopped
	o.writes("\x03")
	o.awaits("interrupted")
	o.awaits("code 4")
	o.writes("second\n")
	o.awaits("then second")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockInTheBackgroundLeavesTheTerminal starts the program as a job in the background.
func TestLockInTheBackgroundLeavesTheTerminal(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `set -m; "$0" lock /l -- sh -c 'echo up; sleep 600' &
read y; echo "then $y"; kill %1; wait %1; echo "code $?"`)
	o.awaits("up")
	o.writes("a line\n")
	o.awaits("then a line")
	o.awaits("code 143")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockCommandIsNotStoppedAtAStart types Ctrl-Z while a shell starts processes. One that is stopped before its
// program begins would hold up the shell, which does not look stopped.
func TestLockCommandIsNotStoppedAtAStart(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `"$0" lock /l -- sh -c 'trap "echo interrupted; exit 4" INT; while :; do /bin/true
echo on; done'; echo "code $?"`)
	for range 300 {
		o.awaits("on")
		o.writes("\x1a")
	}
	o.writes("\x03")
	o.awaits("interrupted")
	o.awaits("code 4")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockCommandThatStopsItselfGoesOn has a command do what an editor does at Ctrl-Z.
func TestLockCommandThatStopsItselfGoesOn(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `"$0" lock /l -- perl -e '$SIG{TSTP} = "DEFAULT"; kill "TSTP", 0
and print "went on\n"'; echo "code $?"`)
	o.awaits("went on")
	o.awaits("code 0")
	testclient.Must(t, o.cmd.Wait())
}

// newMark returns a variable for the environment of a command, by which marked finds its descendants.
func newMark(tb testing.TB) string {
	tb.Helper()
	return "CURATOR_TEST_MARK=" + strconv.Itoa(os.Getpid()) + "-" + tb.Name()
}

// marked returns the processes with a variable in their environment.
func marked(mark string) (found []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range dirs {
		content, err := os.ReadFile(f)
		if err == nil && bytes.Contains(content, []byte(mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			found = append(found, pid)
		}
	}
	return found
}

// init has guards with faults.
func init() {
	testGuards = map[string]func(){
		// It is killed between the start of the command and the report of it.
		"mute": func() {
			for _, fd := range os.Args[2:] {
				n, _ := strconv.Atoi(fd)
				syscall.CloseOnExec(n)
			}
			_ = exec.Command("sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &").Run() // the sleep is left
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		},
		// It starts when the session that it knows of is near its end.
		"late": func() { <-time.After(4 * time.Second) },
	}
}

func TestLockGuardKilledBeforeItsReportLeavesNothing(t *testing.T) {
	environ, _ := connected(t)
	mark := newMark(t)
	p := launch(t, append(environ, mark, "CURATOR_TEST_GUARD=mute"), "", "lock", "/l", "--", "true")
	if code := p.wait(); code != 126 {
		t.Errorf("code %d, want 126: %s", code, p.errors())
	}
	for _, pid := range marked(mark) {
		t.Errorf("left: %d", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestLockSessionNearItsEndStartsNothing(t *testing.T) {
	environ, _ := connected(t)
	p := launch(t, append(environ, "CURATOR_TEST_GUARD=late"), "", "lock", "--session-timeout", "4s",
		"--grace", "500ms", "--margin", "1s", "/l", "--", "echo", "started")
	if got := p.result(); got.code != CodeLost || got.stdout != "" {
		t.Errorf("got %+v, want code %d", got, CodeLost)
	}
}
