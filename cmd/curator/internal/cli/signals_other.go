//go:build !unix

package cli

import "os"

// forwarded are the signals that go to the command.
var forwarded = []os.Signal{os.Interrupt}
