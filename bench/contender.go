package main

import (
	"context"
	"slices"
	"strconv"

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

// startContender starts the process of a library for as many cores as it has; the flags are for Java's virtual machine.
func startContender(ctx context.Context, at place, flags ...string) (contender, error) {
	count := strconv.Itoa(at.cores.count())
	if at.library != javas {
		return startProcess(at.library, "GOMAXPROCS="+count)
	}
	prog := java.Bench
	prog.Flags = append(slices.Clone(prog.Flags), "-XX:ActiveProcessorCount="+count)
	prog.Flags = append(prog.Flags, flags...)
	peer, err := interop.Start(ctx, prog)
	if err != nil {
		return nil, err
	}
	return javaContender{peer}, nil
}
