//go:build linux

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// The times of the holder. A session is short, so that a fault that takes one costs little.
const (
	faultTimeout = 4 * time.Second
	faultGrace   = 500 * time.Millisecond
	faultMargin  = time.Second
)

// behind are the processes that a command has in the background when a fault hits it.
var behind = []struct{ name, script string }{
	{"nothing", ""},
	{"a group", "sleep 600 & sleep 600 &"},
	{"daemons", "setsid sh -c 'setsid sleep 600 & sleep 600' &"},
	{"deaf daemons", `setsid sh -c 'trap "" TERM HUP INT; setsid sleep 600 & while :; do sleep 0.2; done' &`},
	{"forks", "while :; do sleep 0.05 & sleep 0.05; done & setsid sh -c 'while :; do (sleep 0.1 &); sleep 0.1; done' &"},
}

// faultyHolder is a run of curator lock that a fault hits.
type faultyHolder struct {
	*program
	acquired   run.Event
	pid, guard int  // the command, and its parent
	deaf       bool // the command ignores SIGTERM
	faults     *curatortest.Faults
}

// finish lets the command end by itself, with code 5.
func (h *faultyHolder) finish() { _ = h.cmd.Process.Signal(syscall.SIGUSR1) }

// lockFaults has the faults. hit does the fault and returns the exit code of the holder, -1 for a signal. after is
// called when the next holder has the lock.
var lockFaults = []struct {
	name  string
	hit   func(t *testing.T, h *faultyHolder) (code int)
	after func(h *faultyHolder)
	// early means that the server gives the lock away before the time of the session is over: nobody can be in time.
	early bool
}{
	{name: "partition", hit: func(_ *testing.T, h *faultyHolder) int {
		h.faults.Freeze()
		return CodeLost
	}},
	{name: "cut", hit: func(_ *testing.T, h *faultyHolder) int {
		h.faults.CutAll()
		h.finish()
		return 5
	}},
	{name: "supervisor stopped", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, h.cmd.Process.Signal(syscall.SIGSTOP))
		return CodeLost
	}, after: func(h *faultyHolder) { _ = h.cmd.Process.Signal(syscall.SIGCONT) }},
	{name: "supervisor terminated", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, h.cmd.Process.Signal(syscall.SIGTERM))
		return h.terminated()
	}},
	{name: "supervisor killed", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, h.cmd.Process.Kill())
		return -1
	}},
	{name: "guard stopped, then partition", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(h.guard, syscall.SIGSTOP))
		h.faults.Freeze()
		return CodeLost
	}},
	{name: "guard terminated", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(h.guard, syscall.SIGTERM))
		h.finish()
		return 5
	}},
	{name: "guard killed", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(h.guard, syscall.SIGKILL))
		return 128 + int(syscall.SIGKILL)
	}},
	{name: "command stopped, then partition", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(-h.pid, syscall.SIGSTOP))
		h.faults.Freeze()
		return CodeLost
	}},
	{name: "command terminated", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(h.pid, syscall.SIGTERM))
		return h.terminated()
	}},
	{name: "command killed", hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		testclient.Must(t, syscall.Kill(h.pid, syscall.SIGKILL))
		return 128 + int(syscall.SIGKILL)
	}},
	{name: "session ended by an operator", early: true, hit: func(t *testing.T, h *faultyHolder) int {
		t.Helper()
		id, err := strconv.ParseUint(strings.TrimPrefix(h.acquired.Session, "0x"), 16, 64)
		testclient.Must(t, err)
		testclient.Must(t, testenv.Server(t).ExpireSession(int64(id)))
		return CodeLost
	}},
}

// terminated returns the exit code after a SIGTERM.
func (h *faultyHolder) terminated() int {
	if h.deaf {
		h.finish()
		return 5
	}
	return 128 + int(syscall.SIGTERM)
}

// margins has the time from the end of the last process of a holder to the grant of the next one, by fault.
type margins struct {
	mu     sync.Mutex
	byName map[string][]time.Duration
}

func (m *margins) add(name string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName[name] = append(m.byName[name], d)
}

func (m *margins) log(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	total := 0
	for _, f := range lockFaults {
		all := m.byName[f.name]
		if len(all) == 0 {
			continue
		}
		total += len(all)
		slices.Sort(all)
		t.Logf("%-32s %4d faults, all dead before the next grant by %v (least), %v (median)", f.name, len(all),
			all[0].Round(time.Millisecond/10), all[len(all)/2].Round(time.Millisecond/10))
	}
	t.Logf("%d faults", total)
}

// TestLockFaultsLeaveNothing hits a holder with a fault while another one waits. It looks at each of these: no process
// of the holder lives when the next one starts its command, none is left, and the exit code is right. CURATOR_SEED=n
// runs one fault, the n-th.
func TestLockFaultsLeaveNothing(t *testing.T) {
	first, count := uint64(0), testenv.Size(30, 12, 1000)
	if text := os.Getenv("CURATOR_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		testclient.Must(t, err)
		first, count = seed, 1
	}
	atOnce := make(chan struct{}, testenv.Size(6, 6, 10)) // each is four processes
	measured := &margins{byName: map[string][]time.Duration{}}
	t.Run("faults", func(t *testing.T) {
		for i := range count {
			seed := first + uint64(i)
			t.Run(fmt.Sprintf("CURATOR_SEED=%d", seed), func(t *testing.T) {
				t.Parallel()
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				lockFault(t, seed, measured)
			})
		}
	})
	measured.log(t)
}

func lockFault(t *testing.T, seed uint64, measured *margins) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	fault := lockFaults[seed%uint64(len(lockFaults))]
	background := behind[random.IntN(len(behind))]
	deaf, cgroup := random.IntN(2) == 0, random.IntN(2) == 0
	pause := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
	story := fmt.Sprintf("%s after %v; %s behind the command, deaf %t, cgroup %t", fault.name, pause, background.name,
		deaf,
		cgroup)

	root := testenv.Chroot(t)
	proxy := curatortest.NewProxyT(t, testenv.Addr(t))
	dir := t.TempDir()
	alive, exclusive := filepath.Join(dir, "alive"), filepath.Join(dir, "exclusive")
	testclient.Must(t, syscall.Mkfifo(alive, 0o600))
	mark := newMark(t)

	// What the command starts inherits both files: the pipe ends, and the file is free, when all of it is dead.
	script := "exec 8>" + alive + " 9>>" + exclusive + "; flock -n 9 || exit 9; trap 'exit 5' USR1; "
	if deaf {
		script += "trap '' TERM; "
	}
	script += background.script + " echo ready >&8; while :; do sleep 0.1; done"
	h := &faultyHolder{deaf: deaf, faults: proxy.Faults()}
	h.program = launch(t, []string{"CURATOR_CONNECT=" + proxy.Addr() + root, mark}, "", "lock", "--json",
		"--session-timeout", faultTimeout.String(), "--grace", faultGrace.String(), "--margin", faultMargin.String(),
		"--cgroup="+strconv.FormatBool(cgroup), "/l", "--", "sh", "-c", script)
	h.acquired = h.await("acquired")
	h.pid = h.await("started").PID
	h.guard = parentOf(t, h.pid)
	dead, err := awaitReady(alive)
	testclient.Must(t, err)

	next := launch(t, []string{"CURATOR_CONNECT=" + testenv.Addr(t) + root}, "", "lock", "--json", "/l", "--",
		"sh", "-c", "exec 9>>"+exclusive+"; flock -n 9 && echo alone || echo together")
	next.await("waiting")
	<-time.After(pause)
	want := fault.hit(t, h)

	granted := next.await("acquired").Time
	if fault.after != nil {
		fault.after(h)
	}
	if got := next.result(); got.code != CodeOK || !fault.early && got.stdout != "alone\n" {
		t.Errorf("%s: the next holder: %+v", story, got)
	}
	if code := h.wait(); code != want {
		t.Errorf("%s: exit code %d, want %d: %s", story, code, want, h.errors())
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("%s: left %v", story, left)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	select {
	case at := <-dead:
		// Both are later than the end of the last process, by the time that it takes to notice it.
		if gone := h.gone(); gone != nil && gone.Time.Before(at) {
			at = gone.Time
		}
		if !fault.early {
			measured.add(fault.name, granted.Sub(at))
		}
		if !fault.early && granted.Before(at) {
			t.Errorf("%s: dead %v late", story, at.Sub(granted))
		}
	case <-time.After(time.Minute):
		t.Errorf("%s: processes of the command live on", story)
	}
}

// parentOf returns the parent of a process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	testclient.Must(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	testclient.Must(t, err)
	return parent
}

// awaitReady waits for the line of a command in a pipe. The channel gets the time at which nobody has the pipe any
// more.
func awaitReady(pipe string) (dead <-chan time.Time, err error) {
	fd, err := unix.Open(pipe, unix.O_RDONLY|unix.O_CLOEXEC, 0) // waits for the other side
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), pipe)
	lines := bufio.NewReader(file)
	if _, err := lines.ReadString('\n'); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ended := make(chan time.Time, 1)
	go func() {
		defer file.Close() //nolint:errcheck // it was read only
		_, _ = io.Copy(io.Discard, lines)
		ended <- time.Now()
	}()
	return ended, nil
}
