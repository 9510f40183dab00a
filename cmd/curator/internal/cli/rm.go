package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// removal is what rm is to do.
type removal struct {
	recursive, force, dry bool
	version               int32
}

func (a *app) rm() *cobra.Command {
	var (
		r removal
		f fence
	)
	cmd := &cobra.Command{
		Use:     "rm PATH...",
		Aliases: []string{"delete"},
		Short:   "Delete nodes",
		Long: `Rm deletes nodes, with -r also all nodes below them. It does not delete the root or what is the servers' own.
With -r it deletes nothing if there are nodes that it cannot list.
Two rm -r of a path may run at once, and a node that is created below the path meanwhile is deleted too.
` + fenceHelp,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				if err := zkpath.Validate(path, false); err != nil {
					return err
				}
				if path == "/" || isOfServers(path) {
					return usage(errors.New(path + ": is not deleted: it is the root, or the servers' own"))
				}
			}
			deletes := func(node string) bool {
				return slices.ContainsFunc(args, func(path string) bool {
					return node == path || r.recursive && strings.HasPrefix(node, path+"/")
				})
			}
			return a.fencedClient(cmd, f, deletes, func(ctx context.Context, client *framework.Client) error {
				for _, path := range args {
					if err := a.remove(ctx, client, path, r); err != nil {
						return err
					}
				}
				return nil
			})
		},
		ValidArgsFunction: a.completePath,
	}
	f.register(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&r.recursive, "recursive", "r", false, "delete all nodes below first")
	fs.BoolVarP(&r.force, "force", "f", false, "succeed if the node does not exist")
	fs.BoolVar(&r.dry, "dry-run", false, "print the paths, and delete nothing")
	fs.Int32Var(&r.version, "version", -1, "delete the node only in this version")
	return cmd
}

func (a *app) remove(ctx context.Context, client *framework.Client, path string, r removal) error {
	remove := client.Delete().WithVersion(r.version)
	if r.force {
		remove = remove.Quietly()
	}
	if !r.recursive && !r.dry {
		return remove.ForPath(ctx, path)
	}
	depth := -1
	if !r.recursive {
		depth = 0
	}
	t, err := a.read(ctx, client, path, tree.Options{Depth: depth})
	if errors.Is(err, zk.ErrNoNode) && r.force {
		return nil
	}
	if err != nil {
		return err
	}
	paths := t.Paths()
	if r.dry {
		w := output.New(a.Stdout, a.format)
		for _, p := range paths {
			w.Row(found{Path: p}, printable(p))
		}
		return errors.Join(w.Close(), unreadable(t, paths))
	}
	if err := unreadable(t, paths); err != nil {
		return err // what is below would be left, and the rest gone
	}
	if r.version != -1 && t[path].Stat.Version != r.version {
		return remove.ForPath(ctx, path) // which fails, before anything is deleted
	}
	p := a.progressOf("deleted", path, len(paths))
	defer p.stop()
	for _, level := range levels(paths) {
		err := tree.Each(ctx, level, func(ctx context.Context, node string) error {
			defer p.add(1)
			if node == path {
				return nil
			}
			err := client.Delete().Quietly().ForPath(ctx, node)
			if errors.Is(err, zk.ErrNotEmpty) { // something is new below it
				return client.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(ctx, node)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	// It was there: another one has deleted it since, or this one, and its answer was lost.
	return remove.DeletingChildrenIfNeeded().Quietly().ForPath(ctx, path)
}

// levels returns the paths of each depth, the deepest first.
func levels(paths []string) [][]string {
	var all [][]string
	for _, path := range paths {
		depth := len(zkpath.Split(path))
		for len(all) <= depth {
			all = append(all, nil)
		}
		all[depth] = append(all[depth], path)
	}
	slices.Reverse(all)
	return all
}
