// Command config has a service follow its settings while an operator changes them: they are one JSON value in a node.
// Settings that do not decode are reported, and the service goes on with the last ones that did.
//
//	go run ./examples/config
//	go run ./examples/config -connect host:2181 -follow   # then change /examples/config/settings with a tool of yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

const settingsPath = "/examples/config/settings"

// Settings are those of the service.
type Settings struct {
	Greeting string
	Rate     int
}

// parse decodes and checks settings.
func parse(path string, data []byte) (Settings, error) {
	s, err := cache.JSON[Settings](path, data)
	if err == nil && s.Rate < 1 {
		err = fmt.Errorf("rate %d", s.Rate)
	}
	return s, err
}

type options struct {
	connect string
	follow  bool
}

func main() {
	var o options
	flag.StringVar(&o.connect, "connect", "", "connect string; without one a server in memory")
	flag.BoolVar(&o.follow, "follow", false, "change nothing, and follow the settings until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.connect == "" {
		server, err := curatortest.NewServer()
		if err != nil {
			return err
		}
		defer server.Close() //nolint:errcheck // it was in memory
		o.connect = server.ConnectString()
	}
	client, err := framework.New(o.connect)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	live, err := follow(client, settingsPath, parse)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	if o.follow {
		serve(ctx, live, out)
		return nil
	}
	changing, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer stop()
		failed <- operate(changing, client, shown)
	}()
	serve(changing, live, announced{out, changing, shown})
	return <-failed
}

// serve shows the settings each time that they change, until ctx ends.
func serve(ctx context.Context, live *Live[Settings], out io.Writer) {
	for change := range live.Changes(ctx) {
		if change.Err != nil {
			fmt.Fprintf(out, "invalid settings: %v\n", change.Err)
		}
		if s, ok := live.Value(); ok {
			fmt.Fprintf(out, "%q at most %d times a second\n", s.Greeting, s.Rate)
		} else {
			fmt.Fprintln(out, "no settings")
		}
	}
}
