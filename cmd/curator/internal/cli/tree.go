package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

func (a *app) tree() *cobra.Command {
	var depth int
	var data bool
	cmd := &cobra.Command{
		Use:   "tree [PATH]",
		Short: "Print the nodes below a node, as a tree",
		Long: `Tree prints a node and those below it. With -o json each node is a line of its own, each parent before its
children. It reads level by level: a tree that changes meanwhile may look as it never was.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := rootOf(args)
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				t, err := a.look(ctx, client, root, tree.Options{Data: data, Depth: depth})
				if err != nil {
					return err
				}
				if a.format == output.Table {
					return a.drawTree(t, root)
				}
				return a.rows(t, t.Paths(), data)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	cmd.Flags().IntVarP(&depth, "depth", "L", -1, "how many levels to go down; all without it")
	cmd.Flags().BoolVarP(&data, "data", "d", false, "print the data too")
	return cmd
}

// found is a node that tree and find print as JSON or YAML.
type found struct {
	Path string `json:"path"`
	output.Data
	Stat  *stat  `json:"stat,omitempty"`
	Error string `json:"error,omitempty"` // why it could not be read
}

// rows prints nodes; in a table that is their paths.
func (a *app) rows(t tree.Tree, paths []string, data bool) error {
	w := output.New(a.Stdout, a.format)
	for _, path := range paths {
		n := t[path]
		row := found{Path: path}
		if data {
			row.Data = output.NewData(n.Data)
		}
		if n.Stat != nil {
			s := newStat(n.Stat)
			row.Stat = &s
		}
		if n.Err != nil {
			row.Error = reasonOf(n.Err)
		}
		w.Row(row, printable(path))
	}
	return errors.Join(w.Close(), unreadable(t, paths))
}

// unreadable returns an error that names the first node that could not be read, and how many there are.
func unreadable(t tree.Tree, paths []string) error {
	var first error
	n := 0
	for _, path := range paths {
		if err := t[path].Err; err != nil {
			if first == nil {
				first = err
			}
			n++
		}
	}
	if n < 2 {
		return first
	}
	return errtext.Wrap(first, "", "%d nodes could not be read; the first", n)
}

func (a *app) drawTree(t tree.Tree, root string) error {
	var text strings.Builder
	text.WriteString(printable(root) + treeLabel(t[root]) + "\n")
	var draw func(path, indent string)
	draw = func(path, indent string) {
		children := t[path].Children
		for i, name := range children {
			branch, below := "├── ", "│   "
			if i == len(children)-1 {
				branch, below = "└── ", "    "
			}
			child := zkpath.Join(path, name)
			text.WriteString(indent + branch + printable(name) + treeLabel(t[child]) + "\n")
			draw(child, indent+below)
		}
	}
	draw(root, "")
	if _, err := a.Stdout.Write([]byte(text.String())); err != nil {
		return err
	}
	return unreadable(t, t.Paths())
}

// treeLabel is what stands behind a name: what kind the node is unless it is a plain one, and its data.
func treeLabel(n *tree.Node) string {
	var label string
	if n.Stat != nil {
		if k := kind(n.Stat); k != persistent {
			label = " (" + k + ")"
		}
	}
	if len(n.Data) > 0 {
		label += " = " + preview(n.Data)
	}
	if n.Err != nil {
		label += " [unreadable]"
	}
	return label
}

// rootOf returns the node whose tree a command looks at: the argument, or the root without one.
func rootOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "/"
}
