// Package cli has the subcommands of curator, one in each file, and the flags that all of them have.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gocurator/curator/cmd/curator/internal/connect"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

// Env is what a run of the program gets from its caller. A test has its own.
type Env struct {
	Args   []string // without the name of the program
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// System returns the environment of the process.
func System() Env {
	return Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
}

// app is one run of the program.
type app struct {
	Env
	connect connect.Flags
	format  output.Format
}

// Main runs the program and returns its exit code. Errors are a line on the standard error.
func Main(ctx context.Context, env Env) int {
	a := &app{Env: env}
	root := a.root()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if text := message(err); text != "" {
		fmt.Fprintln(env.Stderr, "curator:", text)
	}
	return Code(err)
}

// init has help list the subcommands in the order in which they were added.
func init() { cobra.EnableCommandSorting = false }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "curator",
		Short: "Use ZooKeeper from a shell",
		Long: `Curator uses a ZooKeeper ensemble from a shell, with the recipes of Curator for Go.

The servers are those of --connect, of CURATOR_CONNECT, or of a context in the configuration file.
A flag counts before the environment, and that before the context.

` + exitCodes,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       usageArgs(unknown),
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// Cobra does so too, and its error has no value to know it by.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return usage(cmp.Or(connect.CheckEmpty(cmd.LocalFlags()), checkRanges(cmd.LocalFlags()), cmd.ValidateFlagGroups()))
		},
	}
	root.SetUsageFunc(shortUsage)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	a.connect.Register(root.PersistentFlags())
	a.format.Register(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("output", // which is a flag of it
		cobra.FixedCompletions(output.Names(), cobra.ShellCompDirectiveNoFileComp))
	a.addTo(root)
	return root
}

// addTo adds the subcommands, under the titles that help has.
func (a *app) addTo(root *cobra.Command) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run a command while holding or leading:", []*cobra.Command{a.lock(), a.semaphore(), a.elect()}},
		{"Look at recipes:", []*cobra.Command{a.holders(), a.queue(), a.services()}},
		{"Look at nodes:", []*cobra.Command{a.ls(), a.tree(), a.get(), a.stat(), a.find(), a.watch()}},
		{"Write nodes:", []*cobra.Command{a.create(), a.put(), a.set(), a.rm(), a.chmod()}},
		{"For tests and trials:", []*cobra.Command{a.server(), a.demo()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(a.version(), a.man(), a.guard())
}

// shortUsage prints the usage of a subcommand without the flags that all of them have.
func shortUsage(cmd *cobra.Command) error {
	if cmd.HasParent() {
		hide := func(hidden bool) {
			cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = hidden })
		}
		hide(true)
		defer hide(false)
	}
	if err := (&cobra.Command{}).UsageFunc()(cmd); err != nil {
		return err
	}
	if cmd.HasParent() {
		fmt.Fprintf(cmd.OutOrStdout(), "\nUse \"%s help\" for the flags about the servers and the output.\n",
			cmd.Root().Name())
	}
	return nil
}

// unknown returns an error for a subcommand that there is not.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; is it " + strings.Join(like, ", ") + "?"
	}
	return errors.New(text)
}

// client returns a client that is connected. The caller closes it.
func (a *app) client(ctx context.Context, opts ...framework.Option) (*framework.Client, error) {
	conf, err := a.connect.Resolve(a.Getenv)
	if err != nil {
		return nil, usage(err)
	}
	return conf.Client(ctx, a.say, opts...)
}

// withClient calls fn with a client that is connected, and closes it.
func (a *app) withClient(cmd *cobra.Command, fn func(ctx context.Context, client *framework.Client) error) error {
	client, err := a.client(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the session ends in any case
	return explain(cmd.Context(), client, fn(cmd.Context(), client))
}

// throughOutages calls fn until its error is not the loss of the connection, for subcommands that follow changes. The
// retries of the client lie between two calls.
func throughOutages(ctx context.Context, client *framework.Client, fn func() error) error {
	for {
		err := fn()
		if !errors.Is(err, framework.ErrConnectionLoss) && !errors.Is(err, zk.ErrSessionExpired) {
			return err
		}
		if err := client.BlockUntilConnected(ctx); err != nil {
			return err
		}
	}
}

// least are the smallest values of flags that more than one subcommand has, by name.
var least = map[string]int64{"count": 0, "version": -1, "depth": -1, "older": 0, "newer": 0, "for": 0}

// checkRanges returns an error for a flag below its smallest value.
func checkRanges(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		low, ok := least[f.Name]
		if !ok || !f.Changed || err != nil {
			return
		}
		var value int64
		switch text := f.Value.String(); f.Value.Type() {
		case "int", "int32":
			value, _ = strconv.ParseInt(text, 10, 64) // the flag was parsed
		case "duration":
			d, _ := time.ParseDuration(text)
			value = int64(d)
		default:
			return
		}
		if value < low {
			err = fmt.Errorf("--%s: must be %d at least", f.Name, low)
		}
	})
	return err
}

// usageArgs makes wrong use of the errors of an argument check.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return usage(check(cmd, args)) }
}
