package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/framework"
)

// stat is the stat of a node, as JSON and YAML have it.
type stat struct {
	Kind           string    `json:"kind"`
	Version        int32     `json:"version"`
	ChildVersion   int32     `json:"childVersion"`
	ACLVersion     int32     `json:"aclVersion"`
	Children       int32     `json:"children"`
	Bytes          int32     `json:"bytes"`
	Created        time.Time `json:"created"`
	Modified       time.Time `json:"modified"`
	Czxid          int64     `json:"czxid"`
	Mzxid          int64     `json:"mzxid"`
	Pzxid          int64     `json:"pzxid"`
	EphemeralOwner string    `json:"ephemeralOwner,omitempty"` // 0x…, as ZooKeeper prints sessions
}

// The kinds of nodes.
const (
	persistent = "persistent"
	ephemeral  = "ephemeral"
)

func newStat(s *zk.Stat) stat {
	return stat{
		Kind: kind(s), Version: s.Version, ChildVersion: s.Cversion, ACLVersion: s.Aversion,
		Children: s.NumChildren, Bytes: s.DataLength,
		Created: time.UnixMilli(s.Ctime).UTC(), Modified: time.UnixMilli(s.Mtime).UTC(),
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, EphemeralOwner: output.Session(s.EphemeralOwner),
	}
}

// kind returns the kind of a node. The servers do not say which nodes are containers or have a time to live.
func kind(s *zk.Stat) string {
	if s.EphemeralOwner != 0 {
		return ephemeral
	}
	return persistent
}

func (a *app) stat() *cobra.Command {
	var acl bool
	cmd := &cobra.Command{
		Use:   "stat PATH...",
		Short: "Print the stat of nodes, and what they permit",
		Args:  usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				w := output.New(a.Stdout, a.format)
				for i, path := range args {
					if err := a.statOf(ctx, client, w, path, acl, i > 0); err != nil {
						return err
					}
				}
				return w.Close()
			})
		},
		ValidArgsFunction: a.completePath,
	}
	cmd.Flags().BoolVar(&acl, "acl", false, "print the permissions too")
	return cmd
}

// statOf prints a node: in a table a field is a line, because no terminal is wide enough for all.
func (a *app) statOf(
	ctx context.Context, client *framework.Client, w *output.Writer, path string, withACL, again bool,
) error {
	s, err := client.CheckExists().ForPath(ctx, path)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("%s: %w", path, zk.ErrNoNode)
	}
	st := newStat(s)
	var acl string
	if withACL {
		entries, err := client.GetACL().ForPath(ctx, path)
		if err != nil {
			return err
		}
		acl = formatACL(entries)
	}
	if a.format != output.Table {
		w.Row(struct {
			Path string `json:"path"`
			Stat stat   `json:"stat"`
			ACL  string `json:"acl,omitempty"`
		}{path, st, acl})
		return nil
	}
	if again {
		w.Row(nil, "")
	}
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	for _, line := range [][2]string{
		{"path", printable(path)},
		{"kind", st.Kind},
		{"ephemeralOwner", st.EphemeralOwner},
		{"acl", printable(acl)},
		{"created", stamp(st.Created)},
		{"modified", stamp(st.Modified)},
		{"version", n(int64(s.Version))},
		{"childVersion", n(int64(s.Cversion))},
		{"aclVersion", n(int64(s.Aversion))},
		{"children", n(int64(s.NumChildren))},
		{"bytes", n(int64(s.DataLength))},
		{"czxid", n(s.Czxid)},
		{"mzxid", n(s.Mzxid)},
		{"pzxid", n(s.Pzxid)},
	} {
		if line[1] != "" {
			w.Row(nil, line[:]...)
		}
	}
	return nil
}

// stamp formats a time for a table.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
