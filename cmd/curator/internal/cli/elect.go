package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// onRefusal calls fn when the servers have refused something to a recipe in the background.
func onRefusal(client *framework.Client, fn func(error)) (remove func()) {
	return client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		if errors.Is(e.Err, zk.ErrNoAuth) {
			fn(e.Err)
		}
	})
}

func (a *app) elect() *cobra.Command {
	// A leader without a connection leads on as long as its session lives, as a lock is held.
	h := &holdCommand{app: a, nodes: nodesOf{prefix: "latch-", most: 1}, options: []framework.Option{
		framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}),
	}}
	cmd := &cobra.Command{
		Use:   "elect [flags] PATH (-- COMMAND [ARGUMENT...] | --http ADDRESS)",
		Short: "Run a command while leading",
		Long: "Elect takes part in the election of a path, and runs a command while it leads.\n" +
			"It resigns when the command ends. In Java: LeaderLatch.\n" + electHelp + holdHelp,
		Example: `  curator elect /leader -- run-the-scheduler
  curator elect --http 127.0.0.1:4040 /leader`,
	}
	var (
		id, address string
		validFor    time.Duration
	)
	h.acquire = func(ctx context.Context, client *framework.Client, path string, wait time.Duration) (*acquired, error) {
		if wait >= 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, wait, locks.ErrNotAcquired)
			defer cancel()
		}
		latch := leader.NewLeaderLatch(client, path, leader.WithID(id))
		if err := latch.Start(); err != nil {
			return nil, err
		}
		ctx, refuse := context.WithCancelCause(ctx)
		defer refuse(nil)
		defer onRefusal(client, refuse)() // of its node, which the latch would try to create for ever
		leadership, err := latch.Await(ctx)
		if err != nil {
			_ = latch.Close() // the end of the session deletes its node too
			if cause := context.Cause(ctx); errors.Is(cause, zk.ErrNoAuth) {
				return nil, cause
			}
			return nil, errors.Join(err, context.Cause(ctx))
		}
		return &acquired{leadership.Path(), leadership.Context(), func(context.Context) error { return latch.Close() }}, nil
	}
	h.flags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&id, "id", "", "the name of this participant, for whoever looks (default the name of the host)")
	fs.StringVar(&address, "http", "", "answer whether this process leads on a port, host:port, and run no command")
	fs.DurationVar(&validFor, "valid-for", time.Second, "how long an answer of --http counts at most")
	checkArgs := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if address == "" {
			return checkArgs(cmd, args)
		}
		return usage(cobra.ExactArgs(1)(cmd, args))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if id == "" {
			id, _ = os.Hostname()
		}
		if address == "" {
			return h.run(cmd, args)
		}
		defer h.writeEvents()()
		return h.serve(cmd.Context(), args[0], address, id, validFor)
	}
	return cmd
}
