package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

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

// What the program is asked to be, by its first argument, when it starts itself.
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

// options are the arguments of the program.
type options struct {
	rounds  int
	warmUp  int
	chunk   time.Duration
	only    *regexp.Regexp
	connect string
	out     string
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "`rounds` that count")
	flags.IntVar(&o.warmUp, "warmup", 2, "`rounds` before, that do not")
	flags.DurationVar(&o.chunk, "chunk", time.Second, "`time` for which a contender works in a round")
	only := flags.String("only", "", "measure only the rows that match the `regexp`")
	flags.StringVar(&o.connect, "connect", "", "`host:port` of a ZooKeeper, instead of starting one")
	flags.StringVar(&o.out, "out", "", "`file` to put the tables into, between its marks")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("what is %q?", flags.Arg(0))
	}
	if o.rounds < 1 || o.warmUp < 0 || o.chunk <= 0 {
		return o, errors.New("there must be a round and time for it")
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}
