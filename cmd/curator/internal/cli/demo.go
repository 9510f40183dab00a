package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
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
)

func init() { commands = append(commands, (*app).demo) }

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
offer a service, which one of them takes back from time to time. It prints what happens, and how to look at it from
another terminal.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if o.lasts > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, o.lasts)
				defer cancel()
			}
			return a.show(ctx, cmd.Root(), o)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.servers, "servers", 3, "how many servers")
	fs.IntVar(&o.port, "port", 0, "the port of the first server, with the others behind it; free ones without it")
	fs.DurationVar(&o.lasts, "for", 0, "end after this time")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "do not print what happens")
	return cmd
}

func (a *app) show(ctx context.Context, root *cobra.Command, o showing) (err error) {
	servers := serving{servers: o.servers, host: "127.0.0.1", port: o.port, tick: time.Second, version: "3.8"}
	e, err := servers.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if a.format == output.Table {
		err = a.demoText(root, e)
	} else {
		err = a.demoReady(e)
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
	} else if err := a.tellDemo(ctx, e.ConnectString()); err != nil {
		cancel(err)
	}
	work.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// demoText prints how to look at the demo.
func (a *app) demoText(root *cobra.Command, e *testserver.Ensemble) error {
	text := fmt.Sprintf("An ensemble of %d servers in memory, with three hosts at work. In another terminal:\n\n"+
		"  export CURATOR_CONNECT=%s\n", len(e.Addrs()), e.ConnectString())
	for _, try := range [][2]string{
		{"curator holders /demo", "who holds, and who waits for whom"},
		{"curator tree /demo --data", "all nodes"},
		{"curator watch /demo", "each change as it happens"},
		{"curator lock /demo/locks/orders -- sleep 5", "a command, while no other has the lock"},
	} {
		name := strings.Fields(try[0])[1]
		if c, _, err := root.Find([]string{name}); err == nil && c.Name() == name {
			text += fmt.Sprintf("  %-44s %s\n", try[0], try[1])
		}
	}
	_, err := fmt.Fprint(a.Stdout, text+"\nCtrl-C ends it. What happens here:\n\n")
	return err
}

func (a *app) demoReady(e *testserver.Ensemble) error {
	w := output.New(a.Stdout, a.format)
	w.Row(ready{Ready: true, Connect: e.ConnectString(), Servers: e.Addrs()})
	return w.Close()
}

// tellDemo prints what happens: a line for who gets something, and for who loses it.
func (a *app) tellDemo(ctx context.Context, servers string) error {
	flags := a.connect
	flags.Connect = servers
	flags.TLS, flags.SASL, flags.Auth, flags.Context = connect.TLS{}, connect.SASL{}, nil, ""
	conf, err := flags.Resolve(func(string) string { return "" }) // what is in the environment is about other servers
	if err != nil {
		return err
	}
	client, err := conf.Client(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the ensemble ends too
	if err := client.CreateContainers(ctx, demo.Root); err != nil {
		return err
	}
	if a.format != output.Table {
		return a.followHolders(ctx, client, demo.Root, holding{})
	}
	o := holding{recipes: []string{
		string(recognize.Lock), string(recognize.ReadWriteLock), string(recognize.Semaphore), string(recognize.Latch),
		string(recognize.Service), string(recognize.QueueLocks),
	}}
	return o.followed(ctx, client, demo.Root, func(change string, h holder) error {
		who := h.ID
		if who == "" {
			who = h.Address
		}
		what := ""
		switch {
		case change == changeRemoved && h.State != "waits":
			what = "no longer " + h.State
		case change == changeRemoved:
			return nil
		case h.State == "waits":
			what = "waits"
		default:
			what = h.State
		}
		if h.Recipe == string(recognize.QueueLocks) {
			who, what = h.Node, map[bool]string{true: "done", false: "taken by a consumer"}[change == changeRemoved]
		}
		_, err := fmt.Fprintf(a.Stdout, "%s  %-21s %-12s %s\n", time.Now().Format("15:04:05"), h.Path, who, what)
		return err
	})
}
