//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// pause is the time between two rounds of SIGKILL. A process that forks meanwhile is hit by the next one.
const pause = 2 * time.Millisecond

// ttyPause is the time between two looks at the terminal that the command does not have.
const ttyPause = 200 * time.Millisecond

// guard is the state of a guard process. One goroutine, on a thread of its own, has it.
type guard struct {
	conf   Config
	report *os.File
	timer  *Timer
	tty    *terminal
	pid    int // of the command, which is its group

	phase  phase
	killAt Time   // while terminating
	reason string // of the end, "" for that of the command itself
	lost   bool
	exited bool // the command itself is reaped
	code   int

	stopped   bool // the command is stopped
	wantsTTY  bool // it is stopped because it is not in the foreground of the terminal
	deadline  Time // the end of the grace after a signal that ends programs; 0 without one
	wasPaused bool // the command was stopped when that signal came
}

type phase int

const (
	running phase = iota
	terminating
	killing
)

// Main is a guard process. Its arguments are the numbers of its pipes. It returns its exit code when nothing of the
// command is left.
func Main(args []string) int {
	// The command dies with the thread that has started it (PR_SET_PDEATHSIG), not with the process: see golang/go#27505.
	runtime.LockOSThread()
	var pipes []*os.File
	for _, arg := range args {
		fd, err := strconv.Atoi(arg)
		if err != nil || fd < firstFD {
			return 1
		}
		// The command must not have them: the end of the control pipe is the end of the supervisor.
		syscall.CloseOnExec(fd)
		pipes = append(pipes, os.NewFile(uintptr(fd), "pipe"))
	}
	if len(pipes) != 2 {
		return 1
	}
	control, report := pipes[0], pipes[1]

	// A terminal or a service manager signals all processes. What these signals mean is the business of the supervisor. To
	// ignore them instead would be inherited by the command.
	others := make(chan os.Signal, 1)
	Notify(others, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGTTIN, syscall.SIGTTOU)
	// That is wanted here: nobody could let a command go on that the terminal has stopped, and others wait for the lock. A
	// shell that starts a process as this comes would be stopped for ever, and look as if it ran.
	signal.Ignore(syscall.SIGTSTP)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)

	g := &guard{report: report, tty: openTerminal(supervisorGroups())}
	decoder := json.NewDecoder(control)
	if decoder.Decode(&g.conf) != nil {
		return 1
	}
	var err error
	if g.timer, err = NewTimer(); err == nil {
		err = becomeSubreaper()
	}
	if err == nil && g.nextStop() <= Now() {
		err, g.lost = errors.New("the session is too near its end"), true
	}
	if err == nil {
		g.pid, err = g.start(g.conf.Path, g.conf.Args, g.conf.Env, true)
	}
	if err != nil {
		_ = send(report, Report{Event: NotStarted, Error: err.Error(), Lost: g.lost})
		return 1
	}
	_ = send(report, Report{Event: Started, PID: g.pid}) // without a supervisor, the control pipe has ended
	hasten()

	orders := make(chan Order)
	go func() {
		defer close(orders)
		for {
			var o Order
			if decoder.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	for {
		g.timer.Set(g.nextStop())
		obey := func() {}
		select {
		case o, ok := <-orders:
			obey = func() { g.obey(o) }
			if !ok {
				orders = nil
				obey = func() { g.terminate("the supervisor is gone") }
			}
		case <-children:
		case <-others:
		case <-g.timer.C:
		}
		if g.reap() { // before the order: what it means depends on whether the command is stopped
			removeCgroup(g.conf.Cgroup)
			_ = send(report, Report{Event: Gone, Code: g.code, Lost: g.lost, Reason: g.reason, At: Now()})
			return 0
		}
		obey()
		g.onTime()
		g.shareTerminal()
	}
}

// Notify relays those of the signals to c that this process does not ignore, as nohup lets it. Those stay ignored, for
// the command too.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals { // one by one: without any, signal.Notify would relay all that there are
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// termTime and killTime are the times of the two signals, by the newest proof of the session.
func (g *guard) killTime() Time { return g.conf.End.Add(-g.conf.Margin) }
func (g *guard) termTime() Time { return g.killTime().Add(-g.conf.Grace) }

// nextStop returns the time of the next thing to do without an order.
func (g *guard) nextStop() Time {
	at := g.termTime()
	switch {
	case g.phase == killing:
		return Now().Add(pause)
	case g.phase == terminating:
		return g.killAt
	case g.conf.OnLost.Kill:
		at = g.killTime()
	}
	if g.deadline != 0 {
		at = min(at, g.deadline)
	}
	if g.awaitsTTY() {
		at = min(at, Now().Add(ttyPause))
	}
	return at
}

// onTime does what the time has come for.
func (g *guard) onTime() {
	now := Now()
	switch {
	case g.phase == killing:
		g.kill()
	case g.phase == terminating && now >= g.killAt, now >= g.killTime():
		g.lose()
		g.beginKilling("the session is near its end")
	case g.phase == running && !g.conf.OnLost.Kill && now >= g.termTime():
		g.lose()
		g.terminate("the session is near its end")
	case g.deadline != 0 && now >= g.deadline:
		g.deadline = 0
		if (g.wasPaused || g.stopped) && !g.exited {
			g.beginKilling(StoppedAtSignal)
		}
	}
}

// awaitsTTY reports whether the command is to have the terminal as soon as the supervisor has it. A shell that brings
// the supervisor to the foreground says so to no process.
func (g *guard) awaitsTTY() bool {
	if g.exited || g.stopped && !g.wantsTTY {
		return false
	}
	return g.wantsTTY || g.tty.isInteractive() && g.tty.foreground() != g.pid
}

// shareTerminal does for the command what a shell does for a job: one that runs, or is stopped because it wants the
// terminal, has it while the supervisor is in the foreground. One that is stopped for another reason has not, so that
// Ctrl-C goes to the supervisor.
func (g *guard) shareTerminal() {
	switch {
	case g.stopped && !g.wantsTTY && !g.exited:
		g.tty.take(g.pid)
	case g.awaitsTTY():
		if (g.tty.give(g.pid) || g.tty.foreground() == g.pid) && g.wantsTTY {
			_ = syscall.Kill(-g.pid, syscall.SIGCONT) // no shell does it: that sees the supervisor alone, which runs
		}
	}
}

// stop notes that the command is stopped.
func (g *guard) stop(sig syscall.Signal) {
	if sig == syscall.SIGTSTP {
		// The shell of the terminal does not see that: it would wait for ever, and others for the lock.
		_ = syscall.Kill(-g.pid, syscall.SIGCONT)
		return
	}
	g.stopped, g.wantsTTY = true, g.tty != nil && (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU)
}

// lose notes that the session takes the command with it, unless that has ended or stops for another reason.
func (g *guard) lose() { g.lost = g.lost || g.phase == running && !g.exited }

func (g *guard) obey(o Order) {
	if o.End > g.conf.End {
		g.conf.End = o.End
	}
	if o.Signal != 0 && !g.exited {
		g.signal(syscall.Signal(o.Signal))
	}
	if o.Kill {
		g.lose()
		g.beginKilling(HoldOver)
	}
}

// signal passes a signal on. A command that is stopped notices none, so it goes on. If it does not end within the grace
// after one that ends programs, it is killed: it would hold for ever.
func (g *guard) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.pid, sig) // it may have just ended
	switch sig {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		if g.deadline == 0 {
			g.deadline, g.wasPaused = Now().Add(g.conf.Grace), g.stopped
		}
		g.wasPaused = g.wasPaused || g.stopped
	}
	_ = syscall.Kill(-g.pid, syscall.SIGCONT)
}

// terminate asks the command to end, and its descendants if it has ended itself. It does nothing if it has done so
// before.
func (g *guard) terminate(reason string) {
	if g.phase != running {
		return
	}
	g.phase, g.reason = terminating, reason
	g.killAt = min(Now().Add(g.conf.Grace), g.killTime())
	_ = send(g.report, Report{Event: Terminating, Reason: reason, Lost: g.lost, At: Now()})
	switch {
	case g.exited:
		signalDescendants(syscall.SIGTERM)
		signalDescendants(syscall.SIGCONT)
		return
	case len(g.conf.OnLost.Run) > 0 && g.lost:
		if path, err := exec.LookPath(g.conf.OnLost.Run[0]); err == nil {
			env := append(slices.Clone(g.conf.Env), g.conf.OnLost.PIDVariable+"="+strconv.Itoa(g.pid))
			if _, err := g.start(path, g.conf.OnLost.Run, env, false); err == nil {
				_ = syscall.Kill(-g.pid, syscall.SIGCONT)
				return
			}
		}
	}
	_ = syscall.Kill(-g.pid, syscall.SIGTERM)
	_ = syscall.Kill(-g.pid, syscall.SIGCONT) // one that is stopped would not notice
}

func (g *guard) beginKilling(reason string) {
	if g.phase == killing {
		return
	}
	g.phase = killing
	if g.reason == "" {
		g.reason = reason
	}
	g.kill()
	// Behind the kill, which a full pipe must not delay.
	_ = send(g.report, Report{Event: Killing, Reason: g.reason, Lost: g.lost, At: Now()})
}

// kill is one round of SIGKILL.
func (g *guard) kill() {
	killCgroup(g.conf.Cgroup)
	if !g.exited { // the id of the group may belong to others as soon as the command is reaped
		_ = syscall.Kill(-g.pid, syscall.SIGKILL)
	}
	signalDescendants(syscall.SIGKILL)
}

// reap takes the exit codes of all children that have ended, and reports whether nothing is left. It notes whether the
// command is stopped.
func (g *guard) reap() (gone bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case err == nil && pid > 0 && status.Stopped():
			if pid == g.pid {
				g.stop(status.StopSignal())
			}
		case err == nil && pid > 0 && status.Continued():
			if pid == g.pid {
				g.stopped, g.wantsTTY = false, false
			}
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return g.exited && !cgroupHasProcesses(g.conf.Cgroup)
		case err != nil || pid == 0:
			return false
		case pid == g.pid:
			g.exited, g.code = true, ExitCode(status)
			_ = send(g.report, Report{Event: Exited, Code: g.code})
			defer func() {
				if !gone {
					g.terminate("the command has ended")
				}
			}()
		}
	}
}

// start starts a program in a group of its own that dies with this thread.
func (g *guard) start(path string, args, env []string, isCommand bool) (int, error) {
	sys := &syscall.SysProcAttr{Setpgid: true}
	attach(sys)
	if isCommand {
		g.tty.attach(sys)
	}
	release, err := intoCgroup(sys, g.conf.Cgroup)
	if err != nil {
		return 0, err
	}
	defer release()
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: sys}
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil && g.conf.Cgroup != "" { // it may be the cgroup: a filter of system calls may forbid it
		leaveCgroup(sys)
		pid, err = syscall.ForkExec(path, args, attr)
	}
	return pid, err
}

// ExitCode returns the exit code that a shell has for a status: 128 and the number of the signal that has ended the
// process.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
