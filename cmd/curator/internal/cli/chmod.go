package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

func (a *app) chmod() *cobra.Command {
	var recursive bool
	cmd := &cobra.Command{
		Use:   "chmod ACL PATH...",
		Short: "Set what nodes permit",
		Long: `Chmod sets the permissions of nodes, with -R also those of all nodes below them, without the servers' own.
The permissions are scheme:id:permissions, with commas between several; the letters are c (create), d (delete),
r (read), w (write) and a (admin).`,
		Example: `  curator chmod -R world:anyone:r,digest:alice:AbC=:cdrwa /app
  curator chmod sasl:alice:cdrwa,ip:10.0.0.0/8:r /app`,
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			acl, err := parseACL(args[0])
			if err != nil {
				return usage(err)
			}
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				for _, path := range args[1:] {
					if err := a.setACL(ctx, client, path, acl, recursive); err != nil {
						return err
					}
				}
				return nil
			})
		},
		ValidArgsFunction: a.completePath,
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "R", false, "set those of all nodes below too")
	return cmd
}

// setACL sets the permissions of a node, and of those below it first: the new ones may take away the right to list.
func (a *app) setACL(
	ctx context.Context, client *framework.Client, path string, acl []zk.ACL, recursive bool,
) error {
	set := func(ctx context.Context, p string) error {
		_, err := client.SetACL().WithACL(acl...).ForPath(ctx, p)
		if p != path && errors.Is(err, zk.ErrNoNode) {
			return nil // it has vanished since
		}
		return err
	}
	if !recursive {
		return set(ctx, path)
	}
	t, err := a.read(ctx, client, path, tree.Options{Depth: -1})
	if err != nil {
		return err
	}
	paths := t.Paths()
	if path == "/" { // the servers refuse it for some of their own
		paths = slices.DeleteFunc(paths, isOfServers)
	}
	if err := unreadable(t, paths); err != nil {
		return err // else some would be left out
	}
	p := a.progressOf("set the permissions of", path, len(paths))
	defer p.stop()
	for _, level := range levels(paths) {
		err := tree.Each(ctx, level, func(ctx context.Context, node string) error {
			defer p.add(1)
			return set(ctx, node)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isOfServers reports whether a node is /zookeeper or below that.
func isOfServers(path string) bool {
	names := zkpath.Split(path)
	return len(names) > 0 && names[0] == "zookeeper"
}

// permissions has the letters of zkCli.
var permissions = []struct {
	letter byte
	bit    int32
}{{'c', zk.PermCreate}, {'d', zk.PermDelete}, {'r', zk.PermRead}, {'w', zk.PermWrite}, {'a', zk.PermAdmin}}

// parseACL reads permissions as zkCli has them. An id may have colons: that of digest does, and addresses do.
func parseACL(text string) ([]zk.ACL, error) {
	var acl []zk.ACL
	for entry := range strings.SplitSeq(text, ",") {
		first, last := strings.Index(entry, ":"), strings.LastIndex(entry, ":")
		if first <= 0 || first == last {
			return nil, fmt.Errorf("%q: must be scheme:id:permissions", entry)
		}
		e := zk.ACL{Scheme: entry[:first], ID: entry[first+1 : last]}
		for _, letter := range []byte(entry[last+1:]) {
			bit := permission(letter)
			if bit == 0 {
				return nil, fmt.Errorf("%q: permissions are letters of cdrwa", entry)
			}
			e.Perms |= bit
		}
		acl = append(acl, e)
	}
	return acl, nil
}

func permission(letter byte) int32 {
	for _, p := range permissions {
		if p.letter == letter {
			return p.bit
		}
	}
	return 0
}

// formatACL is the reverse of parseACL.
func formatACL(acl []zk.ACL) string {
	entries := make([]string, len(acl))
	for i, e := range acl {
		var letters []byte
		for _, p := range permissions {
			if e.Perms&p.bit != 0 {
				letters = append(letters, p.letter)
			}
		}
		entries[i] = e.Scheme + ":" + e.ID + ":" + string(letters)
	}
	return strings.Join(entries, ",")
}
