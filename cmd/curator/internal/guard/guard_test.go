//go:build linux

package guard

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestMain makes a guard of a test binary that has its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Subcommand {
		os.Exit(Main(os.Args[2:]))
	}
	testenv.Main(m)
}

// guarded starts a guard with a shell script, which creates the file $0 when it is ready. The orders are sent before.
func guarded(t *testing.T, conf Config, script string, orders ...Order) *Process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	conf.Path, conf.Args, conf.Env = "/bin/sh", []string{"sh", "-c", "exec 2>/dev/null; " + script, ready}, os.Environ()
	p, err := Start(conf, false)
	testclient.Must(t, err)
	for _, o := range orders {
		p.Send(o)
	}
	pid := await(t, p, Started).PID
	t.Cleanup(func() {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // if the test has failed
		_ = p.process.Kill()
		p.Close(pid)
	})
	testenv.Eventually(t, func() bool {
		_, err := os.Stat(ready)
		return err == nil
	}, "the command is ready")
	return p
}

// await returns the next report of an event.
func await(t *testing.T, p *Process, event string) Report {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case r, ok := <-p.Reports:
			if !ok {
				t.Fatalf("the guard has ended without %q", event)
			}
			if r.Event == event {
				return r
			}
		case <-timeout:
			t.Fatalf("no report of %q within a minute", event)
		}
	}
}

// TestGuardKeepsTheMargin has a margin that no machine is busy for. The guard stops the command at its beginning.
func TestGuardKeepsTheMargin(t *testing.T) {
	t.Parallel()
	const margin = 40 * time.Second
	for name, onLost := range map[string]OnLost{
		"term": {}, "kill": {Kill: true}, "run": {Run: []string{"true"}}, "no such program": {Run: []string{"/none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := Now().Add(margin + 6*time.Second)
			p := guarded(t, Config{OnLost: onLost, Grace: time.Second, Margin: margin, End: end},
				`trap '' TERM; : >"$0"; while :; do sleep 0.05; done`)
			killing := await(t, p, Killing)
			gone := await(t, p, Gone)
			if early := end.Add(-margin).Sub(killing.At); early > 0 {
				t.Errorf("%v too early", early)
			}
			if left := end.Sub(gone.At); left < margin/2 {
				t.Errorf("gone %v before the end, want %v", left, margin)
			}
			if !gone.Lost || gone.Code != 128+int(syscall.SIGKILL) || gone.Reason != "the session is near its end" {
				t.Errorf("gone: %+v", gone)
			}
		})
	}
}

// TestGuardTerminatesIfTheProgramOfOnLostCannotStart has one that is missing, and one without its interpreter.
func TestGuardTerminatesIfTheProgramOfOnLostCannotStart(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	testclient.Must(t, os.WriteFile(broken, []byte("#!/none\n"), 0o700))
	for _, program := range []string{"/none", broken} {
		t.Run(filepath.Base(program), func(t *testing.T) {
			t.Parallel()
			p := guarded(t, Config{
				OnLost: OnLost{Run: []string{program}}, Grace: 30 * time.Second, Margin: 10 * time.Second,
				End: Now().Add(46 * time.Second),
			}, `trap 'exit 6' TERM; : >"$0"; while :; do sleep 0.05; done`)
			if gone := await(t, p, Gone); gone.Code != 6 || !gone.Lost {
				t.Errorf("gone: %+v, want code 6", gone)
			}
		})
	}
}

// TestGuardTakesTheLaterEnd has a command that lives longer than the first proof of the session, and old proofs that
// come late.
func TestGuardTakesTheLaterEnd(t *testing.T) {
	t.Parallel()
	first := Now().Add(5 * time.Second)
	p := guarded(t, Config{Grace: 10 * time.Millisecond, Margin: 10 * time.Millisecond, End: first},
		`trap 'exit 5' USR1; : >"$0"; while :; do sleep 0.05; done`,
		Order{End: Now().Add(time.Hour)}, Order{End: first})
	<-time.After(first.Add(200 * time.Millisecond).Sub(Now()))
	p.Send(Order{Signal: int(syscall.SIGUSR1)})
	if gone := await(t, p, Gone); gone.Code != 5 || gone.Lost {
		t.Errorf("gone: %+v, want code 5", gone)
	}
}

// TestGuardWithoutSupervisorTerminates ends the supervisor long before the session ends. The program of --on-lost is
// for the end of a session alone.
func TestGuardWithoutSupervisorTerminates(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	p := guarded(t, Config{
		OnLost: OnLost{Run: []string{"touch", ran}}, Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour),
	}, `trap 'exit 6' TERM; : >"$0"; while :; do sleep 0.05; done`)
	testclient.Must(t, p.control.Close())
	if gone := await(t, p, Gone); gone.Code != 6 || gone.Lost || gone.Reason != "the supervisor is gone" {
		t.Errorf("gone: %+v, want code 6", gone)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program of --on-lost has run")
	}
}

// TestGuardTerminatesAStoppedCommand stops the command, which then gets SIGTERM and has to notice it.
func TestGuardTerminatesAStoppedCommand(t *testing.T) {
	t.Parallel()
	p := guarded(t, Config{Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour)},
		`trap 'exit 6' TERM; : >"$0"; while :; do sleep 0.05; done`)
	p.Send(Order{Signal: int(syscall.SIGSTOP)})
	testclient.Must(t, p.control.Close())
	if gone := await(t, p, Gone); gone.Code != 6 {
		t.Errorf("gone: %+v, want code 6", gone)
	}
}

// TestGuardReportsTheCodeOfACommandThatEndedBeforeTheLoss loses the session when the background alone is left.
func TestGuardReportsTheCodeOfACommandThatEndedBeforeTheLoss(t *testing.T) {
	t.Parallel()
	p := guarded(t, Config{Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour)},
		`setsid sh -c 'trap "" TERM; : >"$0"; sleep 600' "$0" & while ! [ -e "$0" ]; do sleep 0.01; done; exit 3`)
	await(t, p, Exited)
	p.Send(Order{Kill: true})
	if gone := await(t, p, Gone); gone.Code != 3 || gone.Lost {
		t.Errorf("gone: %+v, want code 3", gone)
	}
}

// TestSendToAStoppedGuardReturns fills the pipe of a guard. Not parallel: see TestDestroyReturnsWhenAllAreDead.
func TestSendToAStoppedGuardReturns(t *testing.T) {
	p := guarded(t, Config{Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour)}, `: >"$0"; sleep 600`)
	testclient.Must(t, p.process.Signal(syscall.SIGSTOP))
	testclient.Must(t, p.control.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := p.control.Write(bytes.Repeat([]byte("\n"), 1<<22)) // more than a pipe takes
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	testclient.Must(t, p.control.SetWriteDeadline(time.Time{}))
	p.Send(Order{Kill: true})
}

// TestDestroyReturnsWhenAllAreDead kills the guard of a command that has a process outside its group, which forks: one
// round of SIGKILL misses some. It is not parallel, as Destroy kills and reaps all that is below this process.
func TestDestroyReturnsWhenAllAreDead(t *testing.T) {
	for range 5 {
		t.Run("round", requireDestroyed)
	}
}

func requireDestroyed(t *testing.T) {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "alive")
	testclient.Must(t, syscall.Mkfifo(pipe, 0o600))
	fd, err := syscall.Open(pipe, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	testclient.Must(t, err)
	defer syscall.Close(fd) //nolint:errcheck // it was read only
	p := guarded(t, Config{Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour)},
		`exec 8>`+pipe+`; setsid sh -c 'while :; do sleep 5 & sleep 0.001; done' & : >"$0"; wait`)
	p.Destroy(0)
	if n, err := syscall.Read(fd, make([]byte, 1)); n != 0 || err != nil { // the end: nobody has the other side
		t.Errorf("processes live on: %d %v", n, err)
	}
}

// TestGuardTerminatesTheBackground has a process in the background that ends by itself at SIGTERM, within the grace.
func TestGuardTerminatesTheBackground(t *testing.T) {
	t.Parallel()
	ended := filepath.Join(t.TempDir(), "ended")
	p := guarded(t, Config{Grace: time.Minute, Margin: time.Minute, End: Now().Add(time.Hour)},
		`setsid sh -c 'trap ": >'"'`+ended+`'"'; exit" TERM; : >"$0"; while :; do sleep 0.05; done' "$0" &
while ! [ -e "$0" ]; do sleep 0.01; done; exit 3`)
	if gone := await(t, p, Gone); gone.Code != 3 || gone.Lost {
		t.Errorf("gone: %+v, want code 3", gone)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Error("the process in the background has got no SIGTERM")
	}
}
