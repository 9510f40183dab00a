// Command tour shows the main job of the library live, on a ZooKeeper server in its own memory, or on one of
// yours:
//
//	go run ./examples/tour
//	go run ./examples/tour -connect host:2181
//
// Each step has a file: several clients and one lock in contention.go, work in the background in pipeline.go, a watch
// in watch.go, and a lock that is lost with its session in expiry.go. The program checks what it shows, and exits with
// status 1 if anything was not as it must be.
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
	"time"
)

// timeLimit bounds the whole program; it takes a few seconds.
const timeLimit = 30 * time.Second

// The exit statuses.
const (
	success  = 0
	failure  = 1
	badUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	flags := flag.NewFlagSet("tour", flag.ContinueOnError)
	flags.SetOutput(stderr)
	connect := flags.String("connect", "", "`host:port` of a ZooKeeper, instead of starting one")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return success
		}
		return badUsage
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done in %v", timeLimit))
	defer cancel()

	start := time.Now()
	out := &report{w: stdout}
	if err := show(ctx, *connect, out); err != nil {
		fmt.Fprintln(stderr, "tour:", explain(ctx, err))
		return failure
	}
	if out.violated > 0 {
		fmt.Fprintf(stderr, "tour: %d of %d invariants violated\n", out.violated, out.checked)
		return failure
	}
	fmt.Fprintf(stdout, "\nAll %d invariants held, in %.1f s.\n", out.checked, time.Since(start).Seconds())
	return success
}

// explain says why it ended, where the error only says that it did.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// show runs all steps. The first error ends it: the later steps need what the earlier ones do.
func show(ctx context.Context, connect string, out *report) (err error) {
	zookeeper, err := openServer(connect, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, zookeeper.close()) }()
	st, err := openStage(ctx, zookeeper, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close(ctx)) }()

	for _, step := range []func(context.Context, *stage) error{contend, pipeline, watch, expire} {
		if err := step(ctx, st); err != nil {
			return err
		}
	}
	return nil
}
