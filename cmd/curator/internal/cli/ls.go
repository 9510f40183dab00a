package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

func init() { commands = append(commands, (*app).ls) }

func (a *app) ls() *cobra.Command {
	return &cobra.Command{
		Use:   "ls PATH",
		Short: "List the children of a node",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				children, err := client.GetChildren().ForPath(ctx, args[0])
				if err != nil {
					return err
				}
				slices.Sort(children)
				w := output.New(a.Stdout, a.format)
				for _, name := range children {
					w.Row(struct {
						Name string `json:"name"`
					}{name}, name)
				}
				return w.Close()
			})
		},
	}
}
