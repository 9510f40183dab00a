package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// conditions are those of find. A node has to meet all of them.
type conditions struct {
	name, data, kind, owner string
	older, newer            time.Duration
	empty, null             bool
	depth                   int

	pattern *regexp.Regexp
	session uint64 // of owner
}

func (a *app) find() *cobra.Command {
	var c conditions
	cmd := &cobra.Command{
		Use:   "find PATH",
		Short: "Print the paths of nodes that meet conditions",
		Long: `Find prints the paths of the nodes at and below a node that meet all conditions, one a line.
Names that a terminal could obey are quoted: for a program use -0, as with "xargs -0", or -o json.`,
		Example: `  curator find /locks --kind ephemeral --older 1h
  curator find / --name 'lock-*' -o json
  curator find /old --empty -0 | xargs -0 -n1 curator rm`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return usage(err)
			}
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				t, err := a.look(ctx, client, args[0], tree.Options{Data: c.pattern != nil, Depth: c.depth})
				if err != nil {
					return err
				}
				return a.found(t, &c, time.Now())
			})
		},
		ValidArgsFunction: a.completePath,
	}
	fs := cmd.Flags()
	fs.StringVar(&c.name, "name", "", "a pattern for the name, with * ? [a-z]; without the prefix of a protected create")
	fs.StringVar(&c.data, "data", "", "a regular expression that the data matches")
	fs.StringVar(&c.kind, "kind", "", "the kind: persistent, ephemeral")
	fs.StringVar(&c.owner, "owner", "", "the session that owns the node, as 0x…")
	fs.DurationVar(&c.older, "older", 0, "created longer ago than this")
	fs.DurationVar(&c.newer, "newer", 0, "created not longer ago than this")
	fs.BoolVar(&c.empty, "empty", false, "without data and without children")
	fs.IntVarP(&c.depth, "depth", "L", -1, "how many levels to go down; all without it")
	fs.BoolVarP(&c.null, "print0", "0", false, "print a NUL behind each path, and no line end")
	return cmd
}

func (c *conditions) check() (err error) {
	if _, err := path.Match(c.name, ""); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	if c.data != "" {
		if c.pattern, err = regexp.Compile(c.data); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
	}
	if c.kind != "" && !slices.Contains([]string{persistent, ephemeral}, c.kind) {
		return errors.New("--kind: must be persistent, ephemeral")
	}
	if c.owner != "" {
		id, ok := strings.CutPrefix(c.owner, "0x")
		if c.session, err = strconv.ParseUint(id, 16, 64); err != nil || !ok {
			return errors.New("--owner: must be a session, as 0x1000012ab")
		}
	}
	return nil
}

func (c *conditions) meets(n *tree.Node, now time.Time) bool {
	name := zkpath.Node(n.Path)
	if c.name != "" {
		if is, _ := path.Match(c.name, name); !is { // the pattern was checked
			if is, _ = path.Match(c.name, zkpath.Normalize(name)); !is {
				return false
			}
		}
	}
	if n.Stat == nil {
		return c.kind == "" && c.owner == "" && c.older == 0 && c.newer == 0 && !c.empty && c.pattern == nil
	}
	s := n.Stat
	age := now.Sub(time.UnixMilli(s.Ctime))
	switch {
	case c.kind != "" && kind(s) != c.kind,
		c.owner != "" && (kind(s) != ephemeral || uint64(s.EphemeralOwner) != c.session),
		c.older != 0 && age <= c.older,
		c.newer != 0 && age > c.newer,
		c.empty && (s.NumChildren > 0 || s.DataLength > 0),
		c.pattern != nil && !c.pattern.Match(n.Data):
		return false
	}
	return true
}

func (a *app) found(t tree.Tree, c *conditions, now time.Time) error {
	paths := t.Paths()
	matched := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !c.meets(t[p], now) })
	if c.null {
		var text bytes.Buffer
		for _, p := range matched {
			text.WriteString(p + "\x00")
		}
		_, err := a.Stdout.Write(text.Bytes())
		return errors.Join(err, unreadable(t, paths))
	}
	return errors.Join(a.rows(t, matched, c.pattern != nil), unreadable(t, paths))
}
