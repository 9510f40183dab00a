//go:build unix && !linux

package guard

import "syscall"

// Total reports whether no descendant gets away on this system.
const Total = false

func becomeSubreaper() error { return nil } // there is no such thing

func attach(*syscall.SysProcAttr) {}

// terminal is nil: the command never has it.
type terminal struct{}

func openTerminal([]int) *terminal { return nil }

func supervisorGroups() []int { return nil }

func (*terminal) isInteractive() bool { return false }

func (*terminal) foreground() int { return 0 }

func (*terminal) attach(*syscall.SysProcAttr) {}

func (*terminal) give(int) bool { return false }

func (*terminal) take(int) {}

func takeTerminal(int) {}

func hasten() {}

func signalDescendants(syscall.Signal) {}

func newCgroup() string { return "" }

func intoCgroup(*syscall.SysProcAttr, string) (func(), error) { return func() {}, nil }

func leaveCgroup(*syscall.SysProcAttr) {}

func killCgroup(string) {}

func cgroupHasProcesses(string) bool { return false }

func removeCgroup(string) {}
