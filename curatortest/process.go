package curatortest

import (
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a child process that ends with this one at the latest. Its methods are not safe for concurrent use.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	frozen bool
}

func startProcess(name string, args []string, log io.Writer) (*process, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that has started it, so that thread stays until the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit status of a killed server means nothing
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// freeze stops the process without ending it. It returns when all its threads have stopped: until then they may answer.
func (p *process) freeze() error {
	if p.frozen {
		return nil
	}
	if err := p.suspend(); err != nil {
		return err
	}
	p.frozen = true
	return nil
}

// thaw continues a frozen process.
func (p *process) thaw() error {
	p.frozen = false
	return p.resume()
}

// stopLimit is the time that a server has to end by itself.
const stopLimit = 5 * time.Second

// stop ends the process and waits.
func (p *process) stop(sig syscall.Signal) {
	_ = p.thaw() // a frozen one would not end
	_ = p.signal(sig)
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 16 << 10

// Write takes p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

// String returns the kept output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
