package cli

import (
	"context"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

// node is a node with its data, as get prints it.
type node struct {
	Path string `json:"path"`
	output.Data
	Stat stat `json:"stat"`
}

func (a *app) get() *cobra.Command {
	return &cobra.Command{
		Use:   "get PATH",
		Short: "Print the data of a node",
		Long: `Get prints the data of a node as it is, byte for byte, without a line end behind it.
With -o json or yaml it prints the stat of the node too; data that is not UTF-8 is in base64 then.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				var s zk.Stat
				data, err := client.GetData().StoringStatIn(&s).ForPath(ctx, args[0])
				if err != nil {
					return err
				}
				if a.format == output.Table {
					_, err := a.Stdout.Write(data)
					return err
				}
				w := output.New(a.Stdout, a.format)
				w.Row(node{Path: args[0], Data: output.NewData(data), Stat: newStat(&s)})
				return w.Close()
			})
		},
		ValidArgsFunction: a.completePath,
	}
}
