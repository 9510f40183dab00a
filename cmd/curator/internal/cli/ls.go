package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

func (a *app) ls() *cobra.Command {
	var long bool
	cmd := &cobra.Command{
		Use:   "ls PATH",
		Short: "List the children of a node",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				if long {
					return a.lsLong(ctx, client, args[0])
				}
				children, err := client.GetChildren().ForPath(ctx, args[0])
				if err != nil {
					return err
				}
				return a.lsNames(children)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "print the stat of each child too")
	return cmd
}

func (a *app) lsNames(children []string) error {
	slices.Sort(children)
	w := output.New(a.Stdout, a.format)
	for _, name := range children {
		w.Row(struct {
			Name string `json:"name"`
		}{name}, printable(name))
	}
	return w.Close()
}

func (a *app) lsLong(ctx context.Context, client *framework.Client, path string) error {
	t, err := tree.Read(ctx, client, path, tree.Options{Depth: 1})
	if err != nil {
		return err
	}
	w := output.New(a.Stdout, a.format, "KIND", "VERSION", "CHILDREN", "BYTES", "MODIFIED", "OWNER", "NAME")
	for _, name := range t[path].Children {
		s := newStat(t[zkpath.Join(path, name)].Stat)
		owner := s.EphemeralOwner
		if owner == "" {
			owner = "-"
		}
		w.Row(struct {
			Name string `json:"name"`
			Stat stat   `json:"stat"`
		}{name, s}, s.Kind, strconv.Itoa(int(s.Version)), strconv.Itoa(int(s.Children)), strconv.Itoa(int(s.Bytes)),
			stamp(s.Modified), owner, printable(name))
	}
	return w.Close()
}
