package main

import (
	"context"
	"slices"

	"github.com/gocurator/curator/bench/java"
	"github.com/gocurator/curator/interop"
)

// contender is a process that does work.
type contender interface {
	// connect connects it to a server.
	connect(ctx context.Context, connect string) error
	// leave closes its connections.
	leave(ctx context.Context) error
	run(ctx context.Context, l load) (result, error)
	// close ends the process.
	close() error
}

// startContender starts the process of a library; the flags are for Java's virtual machine.
func startContender(ctx context.Context, name string, flags ...string) (contender, error) {
	if name != javas {
		return startProcess(name)
	}
	prog := java.Bench
	prog.Flags = append(slices.Clone(prog.Flags), flags...)
	peer, err := interop.Start(ctx, prog)
	if err != nil {
		return nil, err
	}
	return javaContender{peer}, nil
}
