package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

func (a *app) set() *cobra.Command {
	var (
		version int32
		f       fence
	)
	cmd := &cobra.Command{
		Use:   "set PATH [DATA]",
		Short: "Set the data of a node",
		Long: `Set sets the data of a node that exists: to the argument, or to all of the standard input, byte for byte.
With --version it fails if the node has another version by now.
` + fenceHelp,
		Example: `  curator get /config | sed s/old/new/ | curator set /config --version 7
  curator set /flag on`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd, f, args, func(
				ctx context.Context, client *framework.Client, path string, data []byte,
			) error {
				s, err := client.SetData().WithVersion(version).ForPath(ctx, path, data)
				if err != nil || a.format == output.Table {
					return err
				}
				w := output.New(a.Stdout, a.format)
				w.Row(struct {
					Path string `json:"path"`
					Stat stat   `json:"stat"`
				}{path, newStat(s)})
				return w.Close()
			})
		},
		ValidArgsFunction: a.completePath,
	}
	f.register(cmd)
	registerNonEmpty(cmd)
	cmd.Flags().Int32Var(&version, "version", -1, "set it only in this version")
	return cmd
}

// nonEmptyFlag is the flag that refuses empty data.
const nonEmptyFlag = "non-empty"

func registerNonEmpty(cmd *cobra.Command) {
	cmd.Flags().Bool(nonEmptyFlag, false, "refuse empty data, as of a program that has failed in front of a pipe")
}

// dataOf returns the data for a node: the argument, or the standard input without one. It is never nil, which would be
// the default data of the client.
func (a *app) dataOf(args []string) ([]byte, error) {
	if len(args) > 0 {
		return []byte(args[0]), nil
	}
	data, err := io.ReadAll(a.Stdin)
	if data == nil {
		data = []byte{}
	}
	return data, err
}
