package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

// maxRows is how many participants of a recipe a table shows without --all.
const maxRows = 20

// followPause is the shortest time from one reading of the tree to the next.
const followPause = 200 * time.Millisecond

// holding is what holders is to do.
type holding struct {
	all, follow bool
	recipes     []string
}

// holder is a participant of a recipe, as JSON and YAML have it.
type holder struct {
	Time    *time.Time `json:"time,omitempty"`   // with --follow
	Change  string     `json:"change,omitempty"` // with --follow
	Recipe  string     `json:"recipe"`
	Path    string     `json:"path"`
	State   string     `json:"state"`
	Node    string     `json:"node"`
	For     string     `json:"waitsFor,omitempty"`
	Since   time.Time  `json:"since"`
	Token   int64      `json:"token"`
	Session string     `json:"session,omitempty"`
	ID      string     `json:"id,omitempty"`
	Address string     `json:"address,omitempty"`
	Note    string     `json:"note,omitempty"`
}

func newHolder(p recognize.Participant) holder {
	return holder{
		Recipe: string(p.Recipe), Path: p.Path, State: string(p.State), Node: p.Node, For: p.For, Since: p.Since,
		Token: p.Token, Session: output.Session(p.Session), ID: p.ID, Address: p.Address, Note: p.Note,
	}
}

var holderHeader = []string{"PATH", "RECIPE", "STATE", "WHO", "FOR", "SESSION", "TOKEN", "NODE", "WAITS FOR"}

func (h *holder) cells(now time.Time) []string {
	who := printable(h.ID)
	if h.Address != "" && h.Address != h.ID {
		if who != "" {
			who += " "
		}
		who += printable(h.Address)
	}
	if h.Note != "" {
		who += " (" + h.Note + ")"
	}
	return []string{
		printable(h.Path), h.Recipe, h.State, dash(shorten(who)), age(now, h.Since), dash(h.Session),
		strconv.FormatInt(h.Token, 10), printable(zkpath.Normalize(zkpath.Node(h.Node))),
		dash(printable(zkpath.Normalize(zkpath.Node(h.For)))),
	}
}

func dash(text string) string {
	if text == "" || text == `""` {
		return "-"
	}
	return text
}

// age is the time since a node was created. The clock of the servers may be ahead of ours.
func age(now, since time.Time) string {
	d := max(now.Sub(since), 0)
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	if d < 48*time.Hour {
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}

func (a *app) holders() *cobra.Command {
	var o holding
	cmd := &cobra.Command{
		Use:   "holders [PATH]",
		Short: "Print who holds, and who waits for whom",
		Long: `Holders finds the recipes at and below a node by the names of their nodes, those of Java Curator and of Curator
for Go alike, and prints who takes part in them: locks, read-write locks, semaphores, latches, queues, double barriers,
members of groups, instances of services. FOR is how long the node exists, TOKEN the transaction that created it, and
WHO what its data says: an id, or the address of the host, which is the default of Curator.

A mutex and a leader selector have the same nodes: both are a "lock". A barrier that is a single node has no name of its
own: it is not found. Holders reads all nodes below PATH, with at most 8 requests in flight.`,
		Example: `  curator holders /locks
  curator holders / -o json | jq -r 'select(.state == "waits") | .path' | sort | uniq -c
  curator holders / --recipe latch --follow`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := rootOf(args)
			for _, name := range o.recipes {
				if !slices.Contains(recognize.Recipes(), name) {
					return usage(fmt.Errorf("--recipe: %q is none of %s", name, strings.Join(recognize.Recipes(), ", ")))
				}
			}
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				switch {
				case o.follow && a.format == output.Table && a.isTerminal():
					return a.screenOfHolders(ctx, client, root, o)
				case o.follow:
					return a.followHolders(ctx, client, root, o)
				}
				t, err := a.look(ctx, client, root, allData)
				if err != nil {
					return err
				}
				if err := a.printHolders(o.of(t), o); err != nil {
					return err
				}
				return unreadable(t, t.Paths())
			})
		},
		ValidArgsFunction: a.completePath,
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.all, "all", false, fmt.Sprintf("print all of a long line in a table, and not just %d", maxRows))
	fs.BoolVarP(&o.follow, "follow", "f", false, "print changes as they happen; on a terminal, a screen that moves")
	fs.StringSliceVar(&o.recipes, "recipe", nil, "print these recipes alone: "+strings.Join(recognize.Recipes(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("recipe", // which is a flag of it
		cobra.FixedCompletions(recognize.Recipes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// allData reads all that recipes are known by.
var allData = tree.Options{Data: true, Depth: -1}

// of finds the participants in a tree.
func (o *holding) of(t tree.Tree) (found []holder) {
	for _, p := range recognize.Find(listing(t)) {
		if len(o.recipes) == 0 || slices.Contains(o.recipes, string(p.Recipe)) {
			found = append(found, newHolder(p))
		}
	}
	return found
}

// listing returns the nodes of a tree for package recognize.
func listing(t tree.Tree) []recognize.Node {
	nodes := make([]recognize.Node, 0, len(t))
	for _, n := range t {
		if n.Stat != nil {
			nodes = append(nodes, recognize.Node{Path: n.Path, Data: n.Data, Stat: *n.Stat})
		}
	}
	return nodes
}

func countUnreadable(t tree.Tree) (n int) {
	for _, node := range t {
		if node.Err != nil {
			n++
		}
	}
	return n
}

func (a *app) printHolders(found []holder, o holding) error {
	w, now := output.New(a.Stdout, a.format, holderHeader...), time.Now()
	for len(found) > 0 {
		n := slices.IndexFunc(found, func(h holder) bool {
			return h.Path != found[0].Path || h.Recipe != found[0].Recipe
		})
		if n < 0 {
			n = len(found)
		}
		shown := n
		if a.format == output.Table && !o.all {
			shown = min(n, maxRows)
		}
		for _, h := range found[:shown] {
			w.Row(h, h.cells(now)...)
		}
		if shown < n {
			w.Row(nil, found[0].Path, found[0].Recipe, fmt.Sprintf("… %d more", n-shown))
		}
		found = found[n:]
	}
	return w.Close()
}

// followHolders prints who is there, and then each change.
func (a *app) followHolders(ctx context.Context, client *framework.Client, root string, o holding) error {
	w := output.New(a.Stdout, a.format)
	unread := func(_ int, err error) {
		if err != nil {
			a.say("some may be missing: " + message(explain(ctx, client, err)))
		}
	}
	return o.followed(ctx, client, root, unread, func(change string, h holder) error {
		now := time.Now().UTC().Truncate(time.Millisecond)
		if a.format != output.Table {
			h.Time, h.Change = &now, change
			w.Row(h)
			return w.Err()
		}
		c := h.cells(now)
		line := fmt.Sprintf("%s  %-7s  %s  %s %s  %s  %s", stamp(now), change, c[0], c[1], c[2], c[7], c[3])
		if h.For != "" {
			line += "  waits for " + c[8]
		}
		_, err := fmt.Fprintln(a.Stdout, line)
		return err
	})
}

// followed calls report for each participant, and then for each change. It reads the tree again after events. unread is
// called with the number of nodes that could not be read when it changes, and with the error of one, nil for none.
func (o *holding) followed(
	ctx context.Context, client *framework.Client, root string, unread func(n int, err error),
	report func(change string, h holder) error,
) error {
	changed := make(chan struct{}, 1)
	touch := func() {
		select {
		case changed <- struct{}{}:
		default: // it is known
		}
	}
	watcher := cache.NewPersistentWatcher(client, root, true)
	watcher.AddListener(func(context.Context, zk.Event) { touch() })
	watcher.AddResetListener(func(context.Context, struct{}) { touch() })
	if err := watcher.Start(); err != nil {
		return err
	}
	defer func() { _ = watcher.Close() }() // the watch ends with the session
	known := map[string]holder{}
	for hidden := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		var t tree.Tree
		err := throughOutages(ctx, client, func() (err error) {
			t, err = tree.Read(ctx, client, root, allData)
			return err
		})
		if err != nil {
			return err
		}
		found := o.of(t)
		if n := countUnreadable(t); n != hidden {
			hidden = n
			unread(n, unreadable(t, t.Paths()))
		}
		if err := changes(known, found, report); err != nil {
			return err
		}
		known = make(map[string]holder, len(found))
		for _, h := range found {
			known[h.key()] = h
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

func (h *holder) key() string { return holderKey(h.Recipe, h.Path, h.Node) }

func holderKey(recipe, path, node string) string { return recipe + " " + path + " " + node }

// The changes of --follow.
const (
	changeAdded   = "added"
	changeChanged = "changed"
	changeRemoved = "removed"
)

// changes reports what has changed: what is gone comes first.
func changes(known map[string]holder, found []holder, report func(change string, h holder) error) error {
	there := make(map[string]bool, len(found))
	for _, h := range found {
		there[h.key()] = true
	}
	var gone []holder
	for key, h := range known {
		if !there[key] {
			gone = append(gone, h)
		}
	}
	slices.SortFunc(gone, func(x, y holder) int { return cmp.Compare(x.Token, y.Token) })
	for _, h := range gone {
		if err := report(changeRemoved, h); err != nil {
			return err
		}
	}
	for _, h := range found {
		before, ok := known[h.key()]
		change := changeAdded
		if ok {
			if before == h {
				continue
			}
			change = changeChanged
		}
		if err := report(change, h); err != nil {
			return err
		}
	}
	return nil
}
