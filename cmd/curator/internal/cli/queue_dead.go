package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// deadLetter is a dead letter, as JSON and YAML have it.
type deadLetter struct {
	queued
	// Corrupt says that the bytes are not those of a queue. Otherwise the consumer has failed, or its codec.
	Corrupt  bool       `json:"corrupt,omitempty"`
	Failures int        `json:"failures,omitempty"` // deliveries that failed, as far as the node has their number
	Put      *time.Time `json:"put,omitempty"`      // the first put, if the node has it
	Trace    string     `json:"trace,omitempty"`    // the id of the trace of the put
}

// deadCount is a path of dead letters, as JSON and YAML have it.
type deadCount struct {
	Path    string     `json:"path"`
	Letters int        `json:"letters"`
	Corrupt int        `json:"corrupt"`
	Bytes   int        `json:"bytes"`
	Oldest  *time.Time `json:"oldest,omitempty"`
}

func (a *app) queueDead() *cobra.Command {
	var count bool
	cmd := &cobra.Command{
		Use:   "dead DEAD...",
		Short: "Look at the dead letters of queues",
		Long: `Dead lists what consumers have moved to the paths of dead letters, in the order of each. FOR is the time since
an item was moved. ITEMS is how many items the node has, or "corrupt" if its bytes are not those of a queue. All other
letters were moved because the consumer failed too often, or because its codec failed. TRACE is the trace of the put,
which has the deliveries with their errors. The nodes do not say from which queue the letters come, nor what the
errors were.`,
		Example: `  curator queue dead /jobs-dead /mails-dead --count
  curator queue dead /jobs-dead -o json | jq -r 'select(.corrupt | not) | .path' |
    xargs -r curator queue requeue /jobs-dead /jobs`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				if count {
					return a.countDead(ctx, client, args)
				}
				return a.listDead(ctx, client, args)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	cmd.Flags().BoolVar(&count, "count", false, "print a line for each path: how many letters, and the oldest of them")
	return cmd
}

// readDead calls fn with the dead letters at a path, in their order.
func readDead(
	ctx context.Context, client *framework.Client, path string, fn func(l deadLetter, items [][]byte),
) error {
	found, t, err := lettersOf(ctx, client, path, true)
	if err != nil {
		return err
	}
	for _, p := range found {
		n := t[zkpath.Join(path, p.Node)]
		l := deadLetter{queued: queued{
			Recipe: string(p.Recipe), Path: n.Path, ID: p.ID, Since: p.Since, Bytes: len(n.Data),
		}}
		items, ok := recognize.Items(n.Data)
		l.Corrupt = !ok && n.Err == nil
		past := recognize.PastOf(n.Data)
		l.Failures, l.Trace = past.Failures, past.Trace
		if !past.Put.IsZero() {
			l.Put = &past.Put
		}
		if l.Corrupt {
			items = [][]byte{n.Data}
		}
		fn(l, items)
	}
	return unreadable(t, t.Paths())
}

// lettersOf is itemsOf without the elements of simple queues, which no consumer moves.
func lettersOf(
	ctx context.Context, client *framework.Client, path string, data bool,
) ([]recognize.Participant, tree.Tree, error) {
	found, t, err := itemsOf(ctx, client, path, data)
	if err != nil {
		return nil, nil, err
	}
	letters := slices.DeleteFunc(slices.Clone(found), func(p recognize.Participant) bool {
		return p.Recipe == recognize.SimpleQueue
	})
	if len(letters) == 0 && len(found) > 0 {
		return nil, nil, usage(fmt.Errorf("%s %w that has dead letters", path, errNoQueue))
	}
	return letters, t, nil
}

func (a *app) listDead(ctx context.Context, client *framework.Client, paths []string) error {
	w, now := output.New(a.Stdout, a.format, "PATH", "ID", "FOR", "BYTES", "ITEMS", "TRACE", "DATA"), time.Now()
	var errs []error
	for _, path := range paths {
		errs = append(errs, readDead(ctx, client, path, func(l deadLetter, items [][]byte) {
			for _, item := range items {
				l.Items = append(l.Items, output.NewData(item))
			}
			number, shown := strconv.Itoa(len(items)), ""
			if l.Corrupt {
				number = "corrupt"
			}
			if len(items) > 0 {
				shown = preview(items[0])
			}
			w.Row(l, printable(l.Path), dash(printable(l.ID)), age(now, l.Since), strconv.Itoa(l.Bytes), number,
				dash(printable(l.Trace)), shown)
		}))
	}
	return errors.Join(append(errs, w.Close())...)
}

func (a *app) countDead(ctx context.Context, client *framework.Client, paths []string) error {
	w, now := output.New(a.Stdout, a.format, "PATH", "LETTERS", "CORRUPT", "BYTES", "OLDEST"), time.Now()
	var errs []error
	for _, path := range paths {
		c := deadCount{Path: path}
		err := readDead(ctx, client, path, func(l deadLetter, _ [][]byte) {
			c.Letters++
			c.Bytes += l.Bytes
			if l.Corrupt {
				c.Corrupt++
			}
			if c.Oldest == nil || l.Since.Before(*c.Oldest) {
				c.Oldest = &l.Since
			}
		})
		if errs = append(errs, err); err != nil {
			continue // a number that is too small would be taken for the truth
		}
		oldest := "-"
		if c.Oldest != nil {
			oldest = age(now, *c.Oldest)
		}
		w.Row(c, printable(path), strconv.Itoa(c.Letters), strconv.Itoa(c.Corrupt), strconv.Itoa(c.Bytes), oldest)
	}
	return errors.Join(append(errs, w.Close())...)
}
