package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"time"
)

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
