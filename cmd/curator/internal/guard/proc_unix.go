//go:build unix && !linux

package guard

import "syscall"

// Total reports whether no descendant gets away on this system.
const Total = false

func becomeSubreaper() error { return nil } // there is no such thing

func attach(*syscall.SysProcAttr, bool) {}

func takeTerminal(int) {} // the command never had it

func hasten() {}

func signalDescendants(syscall.Signal) {}

func newCgroup() string { return "" }

func intoCgroup(*syscall.SysProcAttr, string) (func(), error) { return func() {}, nil }

func leaveCgroup(*syscall.SysProcAttr) {}

func killCgroup(string) {}

func cgroupHasProcesses(string) bool { return false }

func removeCgroup(string) {}
