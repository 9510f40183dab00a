package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/connect"
	"github.com/gocurator/curator/cmd/curator/internal/demo"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/testserver"
	"github.com/gocurator/curator/framework"
)

// showing is what demo is to do.
type showing struct {
	servers, port int
	lasts         time.Duration
	quiet         bool
}

func (a *app) demo() *cobra.Command {
	var o showing
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run an ensemble in memory with clients at work, to try the other subcommands on",
		Long: `Demo needs nothing: it starts an ensemble in memory and three hosts on it. They contend for a lock, a
read-write lock and a semaphore, elect a leader that steps down after a while, put jobs into a queue and do them, and
offer a service, which one of them takes back from time to time. It shows what happens, and how to look at it from
another terminal: on a terminal as a screen that moves, and elsewhere line by line.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if o.lasts > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, o.lasts)
				defer cancel()
			}
			return a.show(ctx, o)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.servers, "servers", 3, "how many servers")
	fs.IntVar(&o.port, "port", 0, "the port of the first server, with the others behind it; free ones without it")
	fs.DurationVar(&o.lasts, "for", 0, "end after this time")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "do not print what happens")
	return cmd
}

func (a *app) show(ctx context.Context, o showing) (err error) {
	servers := serving{servers: o.servers, host: "127.0.0.1", port: o.port, tick: time.Second, version: "3.8"}
	e, err := servers.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	tell := a.tellDemo
	switch {
	case a.format != output.Table:
		err = a.demoReady(e)
	case !o.quiet && a.isTerminal():
		tell = a.screenOfDemo
	default:
		err = a.demoText(e)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { cancel(demo.Run(ctx, e.ConnectString())) })
	if o.quiet {
		<-ctx.Done()
	} else {
		cancel(tell(ctx, e)) // nil is context.Canceled
	}
	work.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// demoTitle says in a line what the demo is.
func demoTitle(n int) string {
	servers := "a ZooKeeper server"
	if n > 1 {
		servers = fmt.Sprintf("%d ZooKeeper servers", n)
	}
	return "curator demo: three hosts share their work through " + servers + " in memory"
}

// demoTries are what to type in another terminal, and what that does. The program has been started as arg.
func demoTries(arg string) [][2]string {
	name := programName(arg)
	return [][2]string{
		{name + " holders /demo/locks --follow", "who waits for whom"},
		{name + " lock /demo/locks/orders -- sleep 5", "let them wait"},
		{name + " queue ls /demo/jobs", "jobs that wait"},
		{name + " services /demo/services", "who offers what"},
		{name + " watch /demo", "every change"},
		{name + " tree /demo --data", "all nodes"},
	}
}

// programName returns how to start the program once more. One that go run has started has no name of its own.
func programName(arg string) string {
	if strings.Contains(filepath.ToSlash(arg), "/go-build") {
		if _, err := os.Stat("cmd/curator/main.go"); err == nil {
			return "go run ./cmd/curator"
		}
	}
	return arg
}

// demoLines returns what to type as lines.
func demoLines(arg, connect string) []string {
	lines := []string{"export CURATOR_CONNECT=" + connect}
	tries, width := demoTries(arg), 0
	for _, try := range tries {
		width = max(width, len(try[0]))
	}
	for _, try := range tries {
		lines = append(lines, fmt.Sprintf("%-*s  # %s", width, try[0], try[1]))
	}
	return lines
}

// demoText prints how to look at the demo.
func (a *app) demoText(e *testserver.Ensemble) error {
	_, err := fmt.Fprintf(a.Stdout, "%s\n\nIn another terminal:\n\n  %s\n\nCtrl-C ends it. What happens here:\n\n",
		demoTitle(len(e.Addrs())), strings.Join(demoLines(os.Args[0], e.ConnectString()), "\n  "))
	return err
}

func (a *app) demoReady(e *testserver.Ensemble) error {
	w := output.New(a.Stdout, a.format)
	w.Row(ready{Ready: true, Connect: e.ConnectString(), Servers: e.Addrs()})
	return w.Close()
}

// demoClient calls fn with a client of the demo.
func (a *app) demoClient(ctx context.Context, e *testserver.Ensemble, fn func(*framework.Client) error) error {
	flags := a.connect
	flags.Connect = e.ConnectString()
	flags.TLS, flags.SASL, flags.Auth, flags.Context = connect.TLS{}, connect.SASL{}, nil, ""
	conf, err := flags.Resolve(func(string) string { return "" }) // what is in the environment is about other servers
	if err != nil {
		return err
	}
	client, err := conf.Client(ctx, a.say)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the ensemble ends too
	if err := client.CreateContainers(ctx, demo.Root); err != nil {
		return err
	}
	return fn(client)
}

// tellDemo prints what happens: a line for who gets something, and for who loses it.
func (a *app) tellDemo(ctx context.Context, e *testserver.Ensemble) error {
	return a.demoClient(ctx, e, func(client *framework.Client) error {
		if a.format != output.Table {
			return a.followHolders(ctx, client, demo.Root, holding{})
		}
		hosts := demoHosts{}
		readable := func(int, error) {} // all of the demo
		return (&holding{}).followed(ctx, client, demo.Root, readable, func(change string, h holder) error {
			event := hosts.event(change, h)
			if event == "" {
				return nil
			}
			_, err := fmt.Fprintf(a.Stdout, "%s  %s\n", time.Now().Format("15:04:05"), event)
			return err
		})
	})
}

// demoHosts has the names of the hosts by their sessions, as the members of their group say. It knows who it is that
// does something, whatever the data of the node says.
type demoHosts map[string]string

// name returns the name of a host, "" for one that is none of the demo.
func (d demoHosts) name(h *holder) string { return d[h.Session] }

// event returns what a change is for people, "" for one that is not worth a line.
func (d demoHosts) event(change string, h holder) string {
	path, what := h.Path, h.State
	switch recipe := recognize.Recipe(h.Recipe); {
	case recipe == recognize.Members:
		d[h.Session] = h.ID
		return ""
	case recipe == recognize.Queue, path == demo.Licences+"/locks": // that looks like a lock before there is a lease
		return ""
	case recipe == recognize.Service:
		what = "offers it"
		if change == changeRemoved {
			what = "no longer offers it"
		}
	case recipe == recognize.QueueLocks:
		path, what = demo.Jobs, "takes a job"
		if change == changeRemoved {
			what = "has done a job"
		}
	case change == changeRemoved && h.State == string(recognize.Waits):
		return ""
	case change == changeRemoved:
		what = "no longer " + h.State
	}
	return fmt.Sprintf("%-21s %-12s %s", path, cmp.Or(d.name(&h), printable(h.ID), printable(h.Address)), what)
}
