//go:build !linux

package curatortest

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
