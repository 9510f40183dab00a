//go:build !unix

package guard

import "os"

// Subcommand is the argument with which this program is a guard.
const Subcommand = "guard"

// Total reports whether no descendant gets away on this system.
const Total = false

// Process is a guard process.
type Process struct{ Reports <-chan Report }

// Unignored returns the signals.
func Unignored(signals ...os.Signal) []os.Signal { return signals }

// Main returns the exit code of a failure.
func Main() int { return 1 }

// Start returns ErrUnsupported.
func Start(Config, bool) (*Process, error) { return nil, ErrUnsupported }

// Send does nothing.
func (*Process) Send(Order) {}

// Destroy does nothing.
func (*Process) Destroy(int) int { return -1 }

// Close does nothing.
func (*Process) Close(int) {}
