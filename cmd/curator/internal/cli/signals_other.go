//go:build !unix

package cli

import "os"

// forwarded are the signals that go to the command.
var forwarded = []os.Signal{os.Interrupt}

// ending are the signals that end a subcommand.
var ending = []os.Signal{os.Interrupt}
