package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

func (a *app) create() *cobra.Command {
	var (
		f                              fence
		parents, sequential, container bool
	)
	cmd := &cobra.Command{
		Use:   "create PATH [DATA]",
		Short: "Create a node",
		Long: `Create creates a node with data: the argument, or all of the standard input, byte for byte.
It prints the path of the node, which with --sequential has a number at its end.
` + fenceHelp,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd, f, args, func(
				ctx context.Context, client *framework.Client, path string, data []byte,
			) error {
				create := client.Create()
				switch {
				case sequential:
					create = create.WithMode(builders.PersistentSequential)
				case container:
					create = create.WithMode(builders.Container)
				}
				if parents {
					create = create.CreatingParentsIfNeeded()
				}
				created, err := create.ForPath(ctx, path, data)
				if errors.Is(err, zk.ErrNoNode) && !errors.Is(err, errFenced) && !parents {
					return fmt.Errorf("%w: it is about the parent, which --parents creates", err)
				}
				if err != nil {
					return err
				}
				w := output.New(a.Stdout, a.format)
				w.Row(struct {
					Path string `json:"path"`
				}{created}, printable(created))
				return w.Close()
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&parents, "parents", "p", false, "create missing parents")
	fs.BoolVar(&sequential, "sequential", false, "put a number behind the name that grows from node to node")
	fs.BoolVar(&container, "container", false, "let the servers delete the node when its last child is gone")
	cmd.MarkFlagsMutuallyExclusive("sequential", "container")
	f.register(cmd)
	registerNonEmpty(cmd)
	return cmd
}

func (a *app) put() *cobra.Command {
	var f fence
	cmd := &cobra.Command{
		Use:   "put PATH [DATA]",
		Short: "Set the data of a node, and create it if it does not exist",
		Long: `Put sets the data of a node: to the argument, or to all of the standard input, byte for byte.
It creates the node and its parents if they do not exist.
With --non-empty it refuses empty data, with code 77: that of a program which has failed in front of a pipe.
` + fenceHelp,
		Example: `  curator lock /locks/report -- \
    bash -c 'set -o pipefail; make-report | curator put --fence --non-empty /report'`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd, f, args, func(
				ctx context.Context, client *framework.Client, path string, data []byte,
			) error {
				_, err := client.Create().CreatingParentsIfNeeded().OrSetData().ForPath(ctx, path, data)
				return err
			})
		},
	}
	f.register(cmd)
	registerNonEmpty(cmd)
	return cmd
}
