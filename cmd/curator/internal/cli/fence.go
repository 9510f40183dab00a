package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/framework"
)

// errFenced is the error of a write that came too late. Nothing was written.
var errFenced = errors.New("not written: the lock is lost")

// ofEnvironment is the value of --fence without one.
const ofEnvironment = "$" + envLockPath

const fenceHelp = `
With --fence the write takes effect only while the node of a lock exists: the servers refuse it when another may
hold the lock by now. Below curator lock, semaphore and elect the node is that of the hold.`

// fence is the flag --fence.
type fence struct{ node string }

func (f *fence) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.node, "fence", "", "write only while the node of a lock exists: "+
		"that of "+envLockPath+", or --fence=NODE")
	fs.Lookup("fence").NoOptDefVal = ofEnvironment
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
	return a.fencedClient(cmd, f, func(ctx context.Context, client *framework.Client) error {
		return fn(ctx, client, args[0], data)
	})
}

// fencedClient calls fn with a client whose writes are fenced, if the flag is there.
func (a *app) fencedClient(
	cmd *cobra.Command, f fence, fn func(ctx context.Context, client *framework.Client) error,
) error {
	node := f.node
	if node == ofEnvironment {
		node = a.Getenv(envLockPath)
	}
	if f.node != "" && node == "" {
		return usage(errors.New("--fence: there is no lock; " + envLockPath + " is not set"))
	}
	return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
		if node == "" {
			return fn(ctx, client)
		}
		err := fn(ctx, client.Fenced(ctx, errFenced, node))
		if errors.Is(err, errFenced) && !errors.Is(err, framework.ErrUncertain) {
			return exit(CodeLost, err)
		}
		return err
	})
}
