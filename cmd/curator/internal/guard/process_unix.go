//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Subcommand is the argument with which this program is a guard.
const Subcommand = "guard"

// sendTimeout bounds a write to a guard that does not read: it is stopped, and the pipe is full.
const sendTimeout = 20 * time.Millisecond

// Process is a guard process of this process, its supervisor. Its methods belong to one goroutine.
type Process struct {
	// Reports is closed when the guard has ended.
	Reports <-chan Report
	// Continued gets SIGCONT when this process goes on after it was stopped, as a shell does it for a job.
	Continued <-chan os.Signal

	continued chan os.Signal
	process   *os.Process
	control   *os.File
	cgroup    string
	done      <-chan struct{} // closed when the guard is reaped
}

// Start starts a guard, which starts the command. It takes the standard streams of this process. With cgroup it puts
// the command into a cgroup of its own where it may.
func Start(conf Config, cgroup bool) (*Process, error) {
	if err := becomeSubreaper(); err != nil {
		return nil, err
	}
	self := "/proc/self/exe" // also after the file was replaced
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	controlled, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer controlled.Close() //nolint:errcheck // the guard has its own
	reports, report, err := os.Pipe()
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	defer report.Close() //nolint:errcheck // the guard has its own
	if cgroup {
		conf.Cgroup = newCgroup()
	}
	process, err := startGuard(self, controlled, report)
	if err != nil {
		_, _ = control.Close(), reports.Close()
		removeCgroup(conf.Cgroup)
		return nil, err
	}
	done := make(chan struct{})
	received := make(chan Report)
	continued := make(chan os.Signal, 1)
	Notify(continued, syscall.SIGCONT)
	p := &Process{
		Reports: received, Continued: continued, continued: continued, process: process, control: control,
		cgroup: conf.Cgroup, done: done,
	}
	go func() {
		defer close(done)
		_, _ = process.Wait() // what it was is in its reports
	}()
	go func() {
		defer close(received)
		defer reports.Close() //nolint:errcheck // it was read only
		decoder := json.NewDecoder(reports)
		for {
			var r Report
			if decoder.Decode(&r) != nil { // the end: only the guard has the other side
				return
			}
			received <- r
		}
	}()
	// A terminal must not stop a process that holds a lock: it may be in the foreground while the command is not. The
	// guard and the command do not inherit that. Writes of events to the terminal go through without SIGTTOU.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if err := send(control, conf); err != nil {
		return p, nil //nolint:nilerr // it has ended already, and Reports says so
	}
	return p, nil
}

// startGuard starts a guard with two pipes. They get numbers that nobody has: others are files that this process has
// inherited, for the command.
func startGuard(self string, pipes ...*os.File) (*os.Process, error) {
	args := []string{"curator", Subcommand}
	for _, p := range pipes {
		fd, err := unix.FcntlInt(p.Fd(), unix.F_DUPFD, firstFD) // without the flag to close it
		if err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		defer unix.Close(fd) //nolint:errcheck // the guard has its own
		args = append(args, strconv.Itoa(fd))
	}
	return os.StartProcess(self, args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // a terminal signals the supervisor alone
	})
}

// firstFD is the least number of a pipe of a guard: a shell gives programs files up to 9.
const firstFD = 10

// Send sends an order, and reports whether the pipe has taken it. One that the guard does not read is lost: it is
// stopped then, and its supervisor has to kill it.
func (p *Process) Send(o Order) bool {
	_ = p.control.SetWriteDeadline(time.Now().Add(sendTimeout))
	return send(p.control, o) == nil
}

// Continue lets a guard go on that is stopped.
func (p *Process) Continue() { _ = p.process.Signal(syscall.SIGCONT) }

// Destroy kills the guard and everything below this process, and returns when nothing is left. It returns the exit code
// of the command with the id pid if that is left to this process, and -1 otherwise.
func (p *Process) Destroy(pid int) (code int) {
	code = -1
	_ = p.process.Kill()
	for {
		killCgroup(p.cgroup)
		signalDescendants(syscall.SIGKILL)
		for {
			var status syscall.WaitStatus
			ended, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				if cgroupHasProcesses(p.cgroup) {
					break
				}
				removeCgroup(p.cgroup)
				return code
			}
			if ended <= 0 {
				break
			}
			if ended == pid {
				code = ExitCode(status)
			}
		}
		<-time.After(pause)
	}
}

// Close waits for the end of the guard, which Destroy or its last report has announced, and frees what it had. It takes
// the terminal back from the command with the id pid.
func (p *Process) Close(pid int) {
	takeTerminal(pid)
	signal.Stop(p.continued)
	_ = p.control.Close()
	for range p.Reports { // what it says no longer matters
	}
	<-p.done
}
