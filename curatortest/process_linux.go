package curatortest

import "syscall"

// childAttributes lets the kernel end a child when this process ends in any way.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
