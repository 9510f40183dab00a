//go:build linux

package cli

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gocurator/curator/cmd/curator/internal/guard"
	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

// awaitState waits until a process is in a state of /proc: T for a stopped one.
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") "+state+" ")
	}, "the process is in the state "+state)
}

// TestLockSignalEndsAStoppedCommand stops a command in each way, and sends the program each signal that ends one.
func TestLockSignalEndsAStoppedCommand(t *testing.T) {
	for _, stop := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTTIN, syscall.SIGTTOU} {
		for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
			if signal.Ignored(end) { // the tests run below nohup: the program leaves that signal ignored, too
				continue
			}
			t.Run(stop.String()+", "+end.String(), func(t *testing.T) {
				t.Parallel()
				environ, connect := connected(t)
				// On the terminal of the tests, which may be in the foreground, the command would go on at SIGTTIN.
				p := launchAs(t, &syscall.SysProcAttr{Setsid: true}, environ, "", "lock", "--json", "/l", "--", "sleep", "600")
				pid := p.await("started").PID
				testclient.Must(t, syscall.Kill(pid, stop))
				awaitState(t, pid, "T")
				testclient.Must(t, p.cmd.Process.Signal(end))
				if code := p.wait(); code != 128+int(end) {
					t.Errorf("code %d, want %d: %s", code, 128+int(end), p.errors())
				}
				nodes, err := locks.NewInterProcessMutex(testclient.Connect(t, connect), "/l").ParticipantNodes(t.Context())
				if err != nil || len(nodes) != 0 {
					t.Errorf("left %v %v", nodes, err)
				}
			})
		}
	}
}

// TestLockSignalKillsAStoppedCommandThatDoesNotEnd has commands that go on and ignore the signal, or stop again.
func TestLockSignalKillsAStoppedCommandThatDoesNotEnd(t *testing.T) {
	for name, script := range map[string]string{
		"ignores": `trap '' TERM; kill -STOP $$; while :; do sleep 0.05; done`,
		"stops":   `trap 'kill -STOP $$' TERM; kill -STOP $$; while :; do kill -STOP $$; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			p := launch(t, environ, "", "lock", "--json", "--grace", "500ms", "/l", "--", "sh", "-c", script)
			awaitState(t, p.await("started").PID, "T")
			testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
			if code := p.wait(); code != 128+int(syscall.SIGKILL) || !strings.Contains(p.errors(), guard.StoppedAtSignal) {
				t.Errorf("code %d, want 137 with the reason: %s", code, p.errors())
			}
		})
	}
}

// TestLockSignalLetsARunningCommandTakeItsTime has a command that takes longer than the grace to end.
func TestLockSignalLetsARunningCommandTakeItsTime(t *testing.T) {
	t.Parallel()
	environ, _ := connected(t)
	p := launch(t, environ, "", "lock", "--json", "--grace", "50ms", "/l", "--", "sh", "-c",
		`trap 'sleep 1; exit 4' TERM; echo ready; while :; do sleep 0.05; done`)
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "ready") }, "the command is ready")
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if code := p.wait(); code != 4 {
		t.Errorf("code %d, want 4: %s", code, p.errors())
	}
}

// TestLockSignalReachesTheCommandBehindAStoppedGuard stops the guard, with the command and without.
func TestLockSignalReachesTheCommandBehindAStoppedGuard(t *testing.T) {
	for name, stopsCommand := range map[string]bool{"the guard": false, "the guard and the command": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			p := launch(t, environ, "", "lock", "--json", "/l", "--", "sleep", "600")
			pid := p.await("started").PID
			stopped := parentOf(t, pid)
			testclient.Must(t, syscall.Kill(stopped, syscall.SIGSTOP))
			awaitState(t, stopped, "T")
			if stopsCommand {
				testclient.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
			testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
			if code := p.wait(); code != 128+int(syscall.SIGTERM) {
				t.Errorf("code %d, want 143: %s", code, p.errors())
			}
		})
	}
}

// TestLockOfABackgroundJobHasTheTerminalInTheForeground brings a job to the foreground whose command is stopped because
// it has read from the terminal.
func TestLockOfABackgroundJobHasTheTerminalInTheForeground(t *testing.T) {
	for _, test := range []struct{ name, keys, code string }{
		{"end of file", "a line\n\x04", "code 0"},
		{"interrupt", "a line\n\x03", "code 130"},
		{"quit", "a line\n\x1c", "code 131"},
		{"stop, then end of file", "a line\n\x1a\x04", "code 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			pid := filepath.Join(t.TempDir(), "pid")
			// A shell with jobs of its own leaves the terminal to itself, and says nothing of the jobs here.
			o := onTerminal(t, environ, `ulimit -c 0; set -m; "$0" lock /l -- sh -c 'echo $$ >`+pid+`; exec cat' &
read x; echo "then $x"; fg >/dev/null; echo "code $?"; read y; echo "at last $y"`)
			var n int
			testenv.Eventually(t, func() bool {
				text, err := os.ReadFile(pid)
				n, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return err == nil && n > 0
			}, "the command has started")
			awaitState(t, n, "T")
			o.writes("a first\n")
			o.awaits("then a first")
			o.writes(strings.SplitAfter(test.keys, "\n")[0])
			o.awaits("a line") // as the terminal echoes it, and cat has it
			o.awaits("a line")
			o.writes(strings.SplitAfter(test.keys, "\n")[1])
			o.awaits(test.code)
			o.writes("a last\n")
			o.awaits("at last a last")
			testclient.Must(t, o.cmd.Wait())
		})
	}
}

// TestLockIsNotStoppedByTheTerminalInTheForeground types Ctrl-Z when the command has the terminal, and when the program
// itself has it because the command does not read from there.
func TestLockIsNotStoppedByTheTerminalInTheForeground(t *testing.T) {
	for name, stdin := range map[string]string{"the command": "", "the program": "</dev/null"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			o := onTerminal(t, environ, `set -m; "$0" lock /l -- sh -c 'trap "echo interrupted; exit 4" INT
while :; do sleep 0.05; echo on; done' `+stdin+` & read x; fg >/dev/null; echo "code $?"`)
			o.awaits("on")
			shell := o.foreground()
			o.writes("a line\n")
			testenv.Eventually(t, func() bool { return o.foreground() != shell }, "the job has the terminal")
			for range 20 {
				o.awaits("on")
				o.writes("\x1a")
			}
			o.writes("\x03")
			o.awaits("interrupted")
			o.awaits("code 4")
			testclient.Must(t, o.cmd.Wait())
		})
	}
}

// foreground returns the process group that has the terminal.
func (o *terminalOf) foreground() int {
	o.t.Helper()
	group, err := unix.IoctlGetInt(int(o.control.Fd()), unix.TIOCGPGRP)
	testclient.Must(o.t, err)
	return group
}

// awaitsPID returns the number of a line "pid 12".
func (o *terminalOf) awaitsPID() int {
	o.t.Helper()
	for line := range o.lines {
		if _, text, ok := strings.Cut(line, "pid "); ok {
			pid, err := strconv.Atoi(text)
			testclient.Must(o.t, err)
			return pid
		}
	}
	o.t.Fatal("no process")
	return 0
}

// TestLockForegroundGivesTheTerminalToARunningCommand has a job that does not read from the terminal, in each shell.
func TestLockForegroundGivesTheTerminalToARunningCommand(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			o := onTerminal(t, environ, `exec `+shell+` -c 'set -m; "$0" lock /l -- sh -c "echo pid \$\$; exec sleep 600" &
read x; fg >/dev/null; echo "code $?"; read y; echo "then $y"' "$0"`)
			pid, own := o.awaitsPID(), o.foreground()
			if own == pid {
				t.Error("a job in the background has the terminal")
			}
			o.writes("a line\n")
			testenv.Eventually(t, func() bool { return o.foreground() == pid }, "the command has the terminal")
			o.writes("\x03")
			o.awaits("code 130")
			testenv.Eventually(t, func() bool { return o.foreground() == own }, "the shell has the terminal again")
			o.writes("a last\n")
			o.awaits("then a last")
			testclient.Must(t, o.cmd.Wait())
		})
	}
}

// TestLockForegroundContinuesACommandThatWasStopped stops the command and the program, and brings the job to the
// foreground.
func TestLockForegroundContinuesACommandThatWasStopped(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `set -m; "$0" lock /l -- sh -c 'echo "pid $$"; exec sleep 600' &
read x; kill -STOP $!; echo "stopped"; read x; fg >/dev/null; echo "code $?"`)
	pid := o.awaitsPID()
	testclient.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	awaitState(t, pid, "T")
	o.writes("stop\n")
	o.awaits("stopped")
	o.writes("go on\n")
	awaitState(t, pid, "S")
	testenv.Eventually(t, func() bool { return o.foreground() == pid }, "the command has the terminal")
	o.writes("\x03")
	o.awaits("code 130")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockBelowAnotherLockHasTheTerminal runs the program as the command of another one, in a pipeline, in which the
// first does not give the terminal away.
func TestLockBelowAnotherLockHasTheTerminal(t *testing.T) {
	for name, inner := range map[string]string{
		"command": `"$0" lock /b -- sh -c 'read x; echo "got $x"'`,
		"script":  `sh -c '"$0" lock /b -- sh -c "read x; echo \"got \$x\""; true' "$0"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, _ := connected(t)
			o := onTerminal(t, environ, `set -m; "$0" lock /a -- `+inner+` | cat; echo "code $?"; read y; echo "then $y"`)
			o.writes("first\n")
			o.awaits("got first")
			o.awaits("code 0")
			o.writes("second\n")
			o.awaits("then second")
			testclient.Must(t, o.cmd.Wait())
		})
	}
}

// TestLockStoppedCommandInTheForegroundEndsAtAnInterrupt stops a command that has the terminal, which goes back.
func TestLockStoppedCommandInTheForegroundEndsAtAnInterrupt(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `set -m
"$0" lock /l -- sh -c 'echo "pid $$"; kill -STOP $$; read x; echo "got $x"; kill -STOP $$
'; echo "code $?"; read y; echo "then $y"`)
	pid := o.awaitsPID()
	awaitState(t, pid, "T")
	testclient.Must(t, syscall.Kill(pid, syscall.SIGCONT)) // with the terminal again
	o.writes("first\n")
	o.awaits("got first")
	awaitState(t, pid, "T")
	testenv.Eventually(t, func() bool { return o.foreground() != pid }, "the terminal goes back")
	o.writes("\x03")
	o.awaits("code 130")
	o.writes("second\n")
	o.awaits("then second")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockInAPipelineSharesTheTerminal has a pager behind the program that reads from the terminal, and then a command
// that reads from it by its name.
func TestLockInAPipelineSharesTheTerminal(t *testing.T) {
	environ, _ := connected(t)
	o := onTerminal(t, environ, `set -m; "$0" lock /l -- echo up | sh -c 'read a; read b </dev/tty; echo "pager $a $b"'
echo "code $?"; echo up | "$0" lock /l -- sh -c 'read a; read b </dev/tty; echo "command $a $b"'; echo "code $?"`)
	o.writes("first\n")
	o.awaits("pager up first")
	o.awaits("code 0")
	o.writes("second\n")
	o.awaits("command up second")
	o.awaits("code 0")
	testclient.Must(t, o.cmd.Wait())
}

// TestLockSupervisorStoppedReportsWhatTheGuardDid stops the program until the end of the session has passed. The guard
// was in time.
func TestLockSupervisorStoppedReportsWhatTheGuardDid(t *testing.T) {
	for range 3 {
		t.Run("round", func(t *testing.T) {
			t.Parallel()
			environ, connect := connected(t)
			p := launch(t, environ, "", "lock", "--json", "--session-timeout", "8s", "--grace", "100ms", "--margin", "3s",
				"/l", "--", "sleep", "600")
			pid := p.await("started").PID
			testclient.Must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
			hold, err := locks.NewInterProcessMutex(testclient.Connect(t, connect), "/l").Acquire(testenv.Context(t))
			testclient.Must(t, err) // the session has ended
			testenv.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, "the command is gone")
			testclient.Must(t, p.cmd.Process.Signal(syscall.SIGCONT))
			if code := p.wait(); code != CodeLost {
				t.Errorf("code %d, want %d", code, CodeLost)
			}
			gone := p.gone()
			if gone == nil || gone.Margin == nil || *gone.Margin < 0 || gone.Reason != "the session is near its end" {
				t.Errorf("not the report of the guard: %s", p.errors())
			}
			testclient.Must(t, hold.Release(t.Context()))
		})
	}
}

// TestLockAllStoppedReportsThatItWasTooLate stops the program and its guard until the session has ended, and then lets
// them go on: nothing can kill the command in time.
func TestLockAllStoppedReportsThatItWasTooLate(t *testing.T) {
	t.Parallel()
	environ, connect := connected(t)
	p := launch(t, environ, "", "lock", "--session-timeout", "4s", "--grace", "100ms", "--margin", "100ms",
		"/l", "--", "sh", "-c", "echo $$; exec sleep 600")
	testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "\n") }, "the command is ready")
	pid, err := strconv.Atoi(strings.TrimSpace(p.output()))
	testclient.Must(t, err)
	stopped := parentOf(t, pid)
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	testclient.Must(t, syscall.Kill(stopped, syscall.SIGSTOP))
	hold, err := locks.NewInterProcessMutex(testclient.Connect(t, connect), "/l").Acquire(testenv.Context(t))
	testclient.Must(t, err) // the session has ended
	if syscall.Kill(pid, 0) != nil {
		t.Fatal("the command is dead already")
	}
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGCONT))
	_ = syscall.Kill(stopped, syscall.SIGCONT) // the program may have killed it
	got := p.result()
	if got.code != CodeLost || strings.Contains(got.stderr, "before") ||
		!strings.Contains(got.stderr, "after the session could have ended") &&
			!strings.Contains(got.stderr, run.SessionEnded+"; ") {
		t.Errorf("got %+v, want code %d and that it was late", got, CodeLost)
	}
	testclient.Must(t, hold.Release(t.Context()))
}

// TestLockDeletedInTheGraceIsALoss deletes the node of a command that is being stopped because its session is near its
// end.
func TestLockDeletedInTheGraceIsALoss(t *testing.T) {
	t.Parallel()
	root := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, root)
	p := launch(t, []string{"CURATOR_CONNECT=" + connect}, "", "lock", "--json", "--session-timeout", "15s",
		"--grace", "5s", "--margin", "500ms", "/l", "--", "sh", "-c", `trap '' TERM; while :; do sleep 0.05; done`)
	path := p.await("acquired").Path
	p.await("started")
	thaw := proxy.Faults().Freeze()
	p.await("terminating")
	testclient.Must(t, testclient.Connect(t, testenv.Addr(t)+root).Delete().ForPath(t.Context(), path))
	thaw()
	if code := p.wait(); code != CodeLost {
		t.Errorf("code %d, want %d: %s", code, CodeLost, p.errors())
	}
	gone := p.gone()
	if gone == nil || gone.Margin != nil || gone.SinceLoss == nil || gone.Reason != run.NodeDeleted {
		t.Errorf("not the loss: %s", p.errors())
	}
}

// TestLockLossWithoutAnAnswerNamesBothReasons has a server that says nothing more once the node is deleted.
func TestLockLossWithoutAnAnswerNamesBothReasons(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t)
	p := launch(t, []string{"CURATOR_CONNECT=" + server.ConnectString()}, "", "lock", "--json", "--session-timeout", "2m",
		"/l", "--", "sleep", "600")
	path := p.await("acquired").Path
	p.await("started")
	server.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Path: "/l/**", Action: curatortest.HoldReply})
	testclient.Must(t, testclient.Connect(t, server.ConnectString()).Delete().ForPath(t.Context(), path))
	if code := p.wait(); code != CodeLost {
		t.Errorf("code %d, want %d: %s", code, CodeLost, p.errors())
	}
	if gone := p.gone(); gone == nil || gone.Margin != nil || gone.Reason != guard.HoldOver {
		t.Errorf("not both reasons: %s", p.errors())
	}
}

// TestLockLossSaysWhatWasLost ends the hold while its session counts as alive: a margin to its end says nothing.
func TestLockLossSaysWhatWasLost(t *testing.T) {
	for _, test := range []struct {
		name string
		args string
		want string
		end  func(t *testing.T, server *curatortest.Server, path string, session int64)
	}{
		{"deleted", "lock", run.NodeDeleted, func(t *testing.T, s *curatortest.Server, path string, _ int64) {
			t.Helper()
			testclient.Must(t, testclient.Connect(t, s.ConnectString()).Delete().ForPath(t.Context(), path))
		}},
		{"expired", "lock", run.SessionEnded, func(t *testing.T, s *curatortest.Server, _ string, id int64) {
			t.Helper()
			testclient.Must(t, s.ExpireSession(id))
		}},
		{
			"leadership expired", "elect", run.SessionEnded,
			func(t *testing.T, s *curatortest.Server, _ string, id int64) {
				t.Helper()
				testclient.Must(t, s.ExpireSession(id))
			},
		},
		{
			"lease deleted", "semaphore", run.NodeDeleted,
			func(t *testing.T, s *curatortest.Server, path string, _ int64) {
				t.Helper()
				testclient.Must(t, testclient.Connect(t, s.ConnectString()).Delete().ForPath(t.Context(), path))
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := curatortest.NewServerT(t)
			connect := []string{"CURATOR_CONNECT=" + server.ConnectString()}
			p := launch(t, connect, "", test.args, "/l", "--", "sh", "-c", `echo "$CURATOR_LOCK_PATH"; sleep 600`)
			testenv.Eventually(t, func() bool { return strings.Contains(p.output(), "\n") }, "the command is ready")
			test.end(t, server, strings.TrimSpace(p.output()), server.Sessions()[0])
			got := p.result()
			if got.code != CodeLost || !strings.Contains(got.stderr, test.want+"; ") ||
				!strings.Contains(got.stderr, "another may have held it since") || strings.Contains(got.stderr, "before") {
				t.Errorf("got %+v, want code %d and %q", got, CodeLost, test.want)
			}
		})
	}
}
