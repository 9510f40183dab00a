package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Total reports whether no descendant gets away on this system.
const Total = true

// becomeSubreaper makes this process the parent of the orphans among its descendants.
func becomeSubreaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// attach lets a child die with this thread.
func attach(sys *syscall.SysProcAttr) { sys.Pdeathsig = syscall.SIGKILL }

// terminal is the terminal of the session of this process. A nil terminal does nothing.
type terminal struct {
	file *os.File
	// groups are those that have the terminal while the command does not: that of the supervisor, and those of the
	// supervisors whose commands have started it.
	groups []int
	// interactive means that the command is to have the terminal while it runs: it reads from it, and what it writes goes
	// to no pager, which would need it as well. Another command gets it when it asks for it.
	interactive bool
}

// openTerminal returns the terminal of this process, nil without one. It is the same for all standard streams: programs
// whose standard input is a pipe open it by its name.
func openTerminal(groups []int) *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &terminal{os.NewFile(uintptr(fd), "/dev/tty"), groups, isTerminal(0) && !isPipe(1)}
}

// supervisorGroups returns the process group of the supervisor, and behind it those of the processes of this program
// which that one descends from.
func supervisorGroups() (groups []int) {
	self, err := os.Stat("/proc/self/exe")
	for pid := os.Getppid(); pid > 1; {
		exe, exeErr := os.Stat("/proc/" + strconv.Itoa(pid) + "/exe")
		if len(groups) == 0 || err == nil && exeErr == nil && os.SameFile(self, exe) {
			if group, err := unix.Getpgid(pid); err == nil {
				groups = append(groups, group)
			}
		}
		p, ok := readProcess(pid)
		if !ok {
			break
		}
		pid = p.parent
	}
	return groups
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

func isPipe(fd int) bool {
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFIFO
}

func (t *terminal) isInteractive() bool { return t != nil && t.interactive }

// foreground returns the group that has the terminal, 0 if that is not known.
func (t *terminal) foreground() int {
	if t == nil {
		return 0
	}
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// attach lets a command that is interactive start with the terminal.
func (t *terminal) attach(sys *syscall.SysProcAttr) {
	if t.isInteractive() && slices.Contains(t.groups, t.foreground()) {
		sys.Foreground, sys.Ctty = true, int(t.file.Fd())
	}
}

// give makes the group of the command that of the terminal if a supervisor has it, and reports whether it did so. The
// calling goroutine is locked to its thread, as that of take.
func (t *terminal) give(command int) bool {
	return t != nil && slices.Contains(t.groups, t.foreground()) && t.set(command)
}

// take makes the group of the supervisor that of the terminal if the command has it.
func (t *terminal) take(command int) {
	if t != nil && len(t.groups) > 0 && t.foreground() == command {
		t.set(t.groups[0])
	}
}

// set makes a group that of the terminal, and reports whether it did so. A process in the background that does so is
// stopped, unless it blocks the signal for that.
func (t *terminal) set(group int) bool {
	var blocked, before unix.Sigset_t
	blocked.Val[0] = 1 << (unix.SIGTTOU - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &before) != nil {
		return false
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	return unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group) == nil
}

// takeTerminal makes the group of this process that of the terminal again, if the command or what is dead has it.
func takeTerminal(command int) {
	t := openTerminal([]int{unix.Getpgrp()})
	if t == nil {
		return
	}
	defer t.file.Close() //nolint:errcheck // nothing was written
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if group := t.foreground(); group == command || group > 0 && errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		t.take(group)
	}
}

// hasten gives this process precedence over others, where it may do so: a kill must not wait for what it kills.
func hasten() {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, -20)
		}
	}
}

// process is a process as /proc has it.
type process struct {
	pid, parent int
	started     string // another process with its id has another one
	zombie      bool
}

func readProcess(pid int) (process, bool) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	end := bytes.LastIndexByte(content, ')') // the name before it may have any character
	fields := strings.Fields(string(content[end+1:]))
	if end < 0 || len(fields) < 20 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid, parent, fields[19], fields[0] == "Z"}, err == nil
}

// descendants returns the processes below this one that are not dead.
func descendants() (found []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // it was read only
	names, _ := dir.Readdirnames(-1)
	children := map[int][]process{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	queue := []int{os.Getpid()}
	for len(queue) > 0 {
		for _, p := range children[queue[0]] {
			queue = append(queue, p.pid)
			if !p.zombie {
				found = append(found, p)
			}
		}
		queue = queue[1:]
	}
	return found
}

// signalDescendants signals every descendant. One that has ended meanwhile, and whose id another process has, is
// spared.
func signalDescendants(sig syscall.Signal) {
	for _, p := range descendants() {
		fd, err := unix.PidfdOpen(p.pid, 0)
		switch {
		case errors.Is(err, unix.ENOSYS): // before Linux 5.3
			_ = syscall.Kill(p.pid, sig)
		case err == nil:
			if again, ok := readProcess(p.pid); ok && again.started == p.started {
				if sig == syscall.SIGKILL { // to end takes time of a processor, too
					_ = unix.Setpriority(unix.PRIO_PROCESS, p.pid, -20)
				}
				_ = unix.PidfdSendSignal(fd, sig, nil, 0)
			}
			_ = unix.Close(fd)
		}
	}
}

// newCgroup returns the directory of a new cgroup below that of this process, "" where cgroups are not delegated to it.
func newCgroup() string {
	own := ownCgroup()
	if own == "" {
		return ""
	}
	dir := filepath.Join(own, fmt.Sprintf("curator-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil { // before Linux 5.14
		removeCgroup(dir)
		return ""
	}
	return dir
}

// ownCgroup returns the directory of the cgroup of this process if it may have children: it is the root of the
// namespace, or systemd has delegated it.
func ownCgroup() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			dir := filepath.Join(root, group)
			if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && (group == "/" || isDelegated(dir)) {
				return dir
			}
		}
	}
	return ""
}

func isDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// intoCgroup starts a child in a cgroup.
func intoCgroup(sys *syscall.SysProcAttr, dir string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	sys.UseCgroupFD, sys.CgroupFD = true, fd
	return func() { _ = unix.Close(fd) }, nil
}

func leaveCgroup(sys *syscall.SysProcAttr) { sys.UseCgroupFD = false }

func killCgroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	}
}

func cgroupHasProcesses(dir string) bool {
	if dir == "" {
		return false
	}
	events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err == nil && strings.Contains(string(events), "populated 1")
}

// removeCgroup removes a cgroup without processes.
func removeCgroup(dir string) {
	if dir != "" {
		_ = os.Remove(dir) // fails as long as it has processes
	}
}
