// Command config has a service that follows its configuration: each setting is a node with JSON, a cache keeps them in
// memory, and the service goes on with the newest one that is valid. An operator changes the settings meanwhile, once
// by mistake.
//
//	go run ./examples/config
//	go run ./examples/config -connect host:2181
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

func main() {
	connect := flag.String("connect", "", "connect string; without one a server in memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *connect, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	if connect == "" {
		server, err := curatortest.NewServer()
		if err != nil {
			return err
		}
		defer server.Close() //nolint:errcheck // it was in memory
		connect = server.ConnectString()
	}
	client, err := framework.New(connect, framework.WithSessionTimeout(4*time.Second))
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	o := operator{client}
	if err := o.write(ctx, "search", `{"rate": 100, "timeout": "200ms"}`); err != nil {
		return err
	}
	limits, err := followLimits(ctx, client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits.close()) }()
	s := service{limits, out}
	s.show("search")

	for _, change := range []string{`{"rate": 250, "timeout": "200ms"}`, `{"rate": "fast"}`, `{"rate": 300, "timeout": "1s"}`} {
		if err := o.write(ctx, "search", change); err != nil {
			return err
		}
		if err := limits.sync(ctx); err != nil { // only so that the output is the same each time
			return err
		}
		s.show("search")
	}
	return nil
}
