//go:build !unix

package guard

import (
	"os"
	"os/signal"
)

// Subcommand is the argument with which this program is a guard.
const Subcommand = "guard"

// Total reports whether no descendant gets away on this system.
const Total = false

// Process is a guard process.
type Process struct {
	Reports   <-chan Report
	Continued <-chan os.Signal
}

// Notify relays the signals to c.
func Notify(c chan<- os.Signal, signals ...os.Signal) { signal.Notify(c, signals...) }

// Main returns the exit code of a failure.
func Main([]string) int { return 1 }

// Start returns ErrUnsupported.
func Start(Config, bool) (*Process, error) { return nil, ErrUnsupported }

// Send does nothing.
func (*Process) Send(Order) bool { return false }

// Continue does nothing.
func (*Process) Continue() {}

// Destroy does nothing.
func (*Process) Destroy(int) int { return -1 }

// Close does nothing.
func (*Process) Close(int) {}
