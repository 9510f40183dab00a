package curatortest

import "syscall"

// childAttributes has the kernel end a child when we end, however we do.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
