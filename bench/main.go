package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gocurator/curator/bench/nullserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// The roles of the program when it starts itself, as its first argument.
const (
	asChild      = "-child"
	asNullServer = "-nullserver"
)

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == asChild:
		return serveChild(ctx, args[1], in, out)
	case len(args) == 1 && args[0] == asNullServer:
		return nullserver.Run(in, out)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	outcomes, err := measure(ctx, o)
	if err != nil {
		return err
	}
	report := newReport(outcomes)
	if _, err := io.WriteString(out, report); err != nil || o.out == "" {
		return err
	}
	return insertReport(o.out, report)
}
