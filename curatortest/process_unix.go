//go:build unix

package curatortest

import (
	"errors"
	"os"
	"syscall"
)

// suspend stops the process, and waits until all its threads have stopped.
func (p *process) suspend() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid(), &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case !status.Stopped():
			return os.ErrProcessDone
		default:
			return nil
		}
	}
}

// resume continues the process after suspend.
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }
