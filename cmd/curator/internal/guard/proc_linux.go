package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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

// attach lets a child die with this thread. The command has the terminal if the standard input is one and the
// supervisor had it.
func attach(sys *syscall.SysProcAttr, isCommand bool) {
	sys.Pdeathsig = syscall.SIGKILL
	if !isCommand {
		return
	}
	foreground, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return // no terminal
	}
	if group, err := unix.Getpgid(os.Getppid()); err == nil && group == foreground {
		sys.Foreground, sys.Ctty = true, 0
	}
}

// takeTerminal makes this process group that of the terminal again, if a group had got it.
func takeTerminal(group int) {
	if foreground, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && foreground == group {
		signal.Ignore(syscall.SIGTTOU) // which stops a process that does so in the background
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
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
