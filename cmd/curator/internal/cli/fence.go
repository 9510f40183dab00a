package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// errFenced is the error of a write that came too late. Nothing was written.
var errFenced = errors.New("not written: the lock is lost")

// ofEnvironment is the value of --fence without one.
const ofEnvironment = "$" + envLockPath

const fenceHelp = `
With --fence the write takes effect only while the node of a lock exists: the servers refuse it when another may
hold the lock by now. Below curator lock, semaphore and elect the node is that of the hold.`

// fence is the flag --fence.
type fence struct {
	node string
	flag *pflag.Flag
}

func (f *fence) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.node, "fence", "", "write only while the node of a lock exists: "+
		"that of "+envLockPath+", or --fence=NODE")
	f.flag = fs.Lookup("fence")
	f.flag.NoOptDefVal = ofEnvironment
}

// of returns the node of the fence, "" without one. hits reports whether a write is about a node.
func (f *fence) of(getenv func(string) string, hits func(node string) bool) (string, error) {
	node := f.node
	switch {
	case !f.flag.Changed:
		return "", nil
	case node == "": // as of a variable that is not set: a write without a fence would be what nobody wants
		return "", usage(errors.New("--fence=: there is no lock; the node is empty"))
	case node == ofEnvironment:
		if node = getenv(envLockPath); node == "" {
			return "", usage(errors.New("--fence: there is no lock; " + envLockPath + " is not set"))
		}
	}
	if err := zkpath.Validate(node, false); err != nil {
		return "", usage(fmt.Errorf("--fence: %w", err))
	}
	if hits(node) { // with a space in place of the = the node is the first argument
		return "", usage(fmt.Errorf("--fence: it is about %s, the node of the lock itself; to name that, write --fence=NODE",
			node))
	}
	return node, nil
}

// errNoLock is the error for a fence that holds nothing back.
var errNoLock = errors.New("is not the node of a lock: it stays when the lock is lost")

// check fails if the node of a fence is there, and is not that of a hold: "/locks/report" instead of what is below it.
func (*fence) check(ctx context.Context, client *framework.Client, node string) error {
	s, err := client.CheckExists().ForPath(ctx, node)
	if err == nil && s != nil && kind(s) != ephemeral {
		return usage(fmt.Errorf("--fence: %s %w", node, errNoLock))
	}
	return err
}

// write calls fn with the data for the node that args name, and a client as that of fencedClient.
func (a *app) write(
	cmd *cobra.Command, f fence, args []string,
	fn func(ctx context.Context, client *framework.Client, path string, data []byte) error,
) error {
	data, err := a.dataOf(args[1:])
	if err != nil {
		return err
	}
	if nonEmpty, _ := cmd.Flags().GetBool(nonEmptyFlag); nonEmpty && len(data) == 0 {
		return exit(CodeRefused, errors.New("not written: the data is empty"))
	}
	return a.fencedClient(cmd, f, isPath(args[0]), func(ctx context.Context, client *framework.Client) error {
		return fn(ctx, client, args[0], data)
	})
}

// isPath reports whether a node is that of a path.
func isPath(path string) func(node string) bool {
	return func(node string) bool { return node == path }
}

// fencedClient calls fn with a client whose writes are fenced, if the flag is there. hits reports whether fn writes to
// a node.
func (a *app) fencedClient(
	cmd *cobra.Command, f fence, hits func(node string) bool,
	fn func(ctx context.Context, client *framework.Client) error,
) error {
	node, err := f.of(a.Getenv, hits)
	if err != nil {
		return err
	}
	return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
		if node == "" {
			return fn(ctx, client)
		}
		if err := f.check(ctx, client, node); err != nil {
			return err
		}
		err := fn(ctx, client.Fenced(ctx, errFenced, node))
		if errors.Is(err, errFenced) && !errors.Is(err, framework.ErrUncertain) {
			return exit(CodeLost, err)
		}
		return err
	})
}
