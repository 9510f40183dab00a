package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// queued is an item of a queue, as JSON and YAML have it.
type queued struct {
	Recipe string        `json:"recipe"`
	Path   string        `json:"path"` // of the node
	ID     string        `json:"id,omitempty"`
	Since  time.Time     `json:"since"`
	Bytes  int           `json:"bytes"`
	Items  []output.Data `json:"items,omitempty"` // of peek
}

func (a *app) queue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Look into queues, and put dead letters back",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var most int
	ls := &cobra.Command{
		Use:   "ls PATH",
		Short: "List what is in a queue, or in its dead letters, in its order",
		Long: `Ls lists the nodes of a queue in the order in which they are due. ID is the priority, the due time or the id
that the name of the node has. Dead letters are in a queue too: give their path.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				return a.queueLs(ctx, client, args[0], most)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	ls.Flags().IntVarP(&most, "count", "n", 0, "list so many at most; all without it")
	peekMost := 1
	peek := &cobra.Command{
		Use:   "peek PATH",
		Short: "Print the first items of a queue, and leave them there",
		Long: `Peek prints the bytes of the first items, each as it is and with a line end behind it. A node may have several
items, which were put together. With -o json a node is a line; an item that is not UTF-8 is in base64 then.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				return a.queuePeek(ctx, client, args[0], peekMost)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	peek.Flags().IntVarP(&peekMost, "count", "n", 1, "print the items of so many nodes at most")
	cmd.AddCommand(ls, peek, a.queueDead(), a.queueRequeue())
	return cmd
}

var errNoQueue = errors.New("has nodes, and none of a queue")

// itemsOf returns the participants of the queue at a path, and its nodes, with their data if it is wanted.
func itemsOf(
	ctx context.Context, client *framework.Client, path string, data bool,
) ([]recognize.Participant, tree.Tree, error) {
	t, err := tree.Read(ctx, client, path, tree.Options{Data: data, Depth: 1})
	if err != nil {
		return nil, nil, err
	}
	var items []recognize.Participant
	for _, p := range recognize.Find(listing(t)) {
		if p.State == recognize.Queued && p.Path == path {
			items = append(items, p)
		}
	}
	if len(items) == 0 && len(t[path].Children) > 0 {
		return nil, nil, usage(fmt.Errorf("%s %w", path, errNoQueue))
	}
	return items, t, nil
}

func (a *app) queueLs(ctx context.Context, client *framework.Client, path string, most int) error {
	items, t, err := itemsOf(ctx, client, path, true)
	if err != nil {
		return err
	}
	if most > 0 {
		items = items[:min(most, len(items))]
	}
	w, now := output.New(a.Stdout, a.format, "NODE", "ID", "FOR", "BYTES"), time.Now()
	for _, p := range items {
		n := t[zkpath.Join(path, p.Node)]
		w.Row(queued{Recipe: string(p.Recipe), Path: n.Path, ID: p.ID, Since: p.Since, Bytes: len(n.Data)},
			printable(p.Node), dash(printable(p.ID)), age(now, p.Since), strconv.Itoa(len(n.Data)))
	}
	return w.Close()
}

func (a *app) queuePeek(ctx context.Context, client *framework.Client, path string, most int) error {
	found, t, err := itemsOf(ctx, client, path, true)
	if err != nil {
		return err
	}
	w := output.New(a.Stdout, a.format)
	for _, p := range found[:max(min(most, len(found)), 0)] {
		n := t[zkpath.Join(path, p.Node)]
		items, ok := recognize.Items(n.Data)
		if !ok {
			items = [][]byte{n.Data} // of a simple queue, or not readable
		}
		if a.format == output.Table {
			for _, item := range items {
				if _, err := a.Stdout.Write(append(item[:len(item):len(item)], '\n')); err != nil {
					return err
				}
			}
			continue
		}
		q := queued{Recipe: string(p.Recipe), Path: n.Path, ID: p.ID, Since: p.Since, Bytes: len(n.Data)}
		for _, item := range items {
			q.Items = append(q.Items, output.NewData(item))
		}
		w.Row(q)
	}
	return w.Close()
}
