// Command config is a service of a fleet that shares its settings, one JSON value in a node, while an operator changes
// them. Each service sees the others. Settings that do not decode are reported, and the service goes on with the last
// ones that did.
//
//	go run ./examples/config
//	go run ./examples/config -connect host:2181 -name a -follow   # more of them, with other names
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/examples/waiting"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/shared"
)

const (
	settingsPath = "/examples/config/settings"
	fleetPath    = "/examples/config/fleet"
)

// Settings are those of the service.
type Settings struct {
	Greeting string
	Rate     int
}

// checked is the codec of settings that make sense.
type checked struct{ codec.JSON[Settings] }

// Decode decodes and checks settings.
func (c checked) Decode(data []byte) (Settings, error) {
	s, err := c.JSON.Decode(data)
	if err == nil && s.Rate < 1 {
		err = fmt.Errorf("rate %d", s.Rate)
	}
	return s, err
}

type options struct {
	connect string
	name    string
	follow  bool
}

func main() {
	var o options
	flag.StringVar(&o.connect, "connect", "", "connect string; without one a server in memory")
	flag.StringVar(&o.name, "name", "service", "name of the service in the fleet")
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
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	if err := waiting.ForServer(ctx, client, o.connect, say); err != nil {
		return err
	}
	settings := shared.NewValue(client, settingsPath, checked{})
	fleet := nodes.NewGroupMember(client, fleetPath, o.name, nil)
	if err := fleet.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close(context.WithoutCancel(ctx))) }()
	if err := fleet.Ready(ctx); err != nil {
		return err
	}
	if o.follow {
		serve(ctx, settings, fleet, out)
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
	serve(changing, settings, fleet, announced{out, changing, shown})
	return <-failed
}

// serve shows the settings and the fleet each time that the settings change, until ctx ends.
func serve(ctx context.Context, settings *shared.Value[Settings], fleet *nodes.GroupMember, out io.Writer) {
	var last *Settings // that make sense
	for s, err := range settings.Watch(ctx) {
		switch {
		case err == nil:
			last = &s
		case errors.Is(err, zk.ErrNoNode):
			last = nil
		default:
			fmt.Fprintf(out, "invalid settings: %v\n", err)
		}
		if last == nil {
			fmt.Fprintln(out, "no settings")
			continue
		}
		members := slices.Sorted(maps.Keys(fleet.CurrentMembers()))
		fmt.Fprintf(out, "%q at most %d times a second, as all of %s\n",
			last.Greeting, last.Rate, strings.Join(members, ", "))
	}
}
