// Package cli has the subcommands of curator, one in each file, and the flags that all of them have.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

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
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return usage(cmd.ValidateFlagGroups()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	a.connect.Register(root.PersistentFlags())
	a.format.Register(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("output", // which is a flag of it
		cobra.FixedCompletions(output.Names(), cobra.ShellCompDirectiveNoFileComp))
	for _, add := range commands {
		root.AddCommand(add(a))
	}
	return root
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

// commands has a function for each subcommand, which each file adds to in its init.
var commands []func(*app) *cobra.Command

// client returns a client that is connected. The caller closes it.
func (a *app) client(ctx context.Context, opts ...framework.Option) (*framework.Client, error) {
	conf, err := a.connect.Resolve(a.Getenv)
	if err != nil {
		return nil, usage(err)
	}
	return conf.Client(ctx, opts...)
}

// withClient calls fn with a client that is connected, and closes it.
func (a *app) withClient(cmd *cobra.Command, fn func(ctx context.Context, client *framework.Client) error) error {
	client, err := a.client(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the session ends in any case
	return fn(cmd.Context(), client)
}

// usageArgs makes wrong use of the errors of an argument check.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return usage(check(cmd, args)) }
}
