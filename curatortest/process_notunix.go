//go:build !unix

package curatortest

import "errors"

// suspend fails: no signal stops a process here. The servers in memory freeze on all systems.
func (p *process) suspend() error { return errors.ErrUnsupported }

// resume does nothing.
func (p *process) resume() error { return nil }
