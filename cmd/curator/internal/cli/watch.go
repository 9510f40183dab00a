package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// watching is what watch is to do.
type watching struct {
	flat, data bool
	count      int
}

// maxEvents is how many events wait for the output. When it takes them more slowly, the watch ends: to drop events
// silently would be worse.
const maxEvents = 100_000

// change is an event, as watch prints it.
type change struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Path  string    `json:"path,omitempty"`
	output.Data
	Stat *stat `json:"stat,omitempty"`

	refused error // why the data could not be read
}

// The events.
const (
	eventWatching  = "watching"
	eventCreated   = "created"
	eventChanged   = "changed"
	eventDeleted   = "deleted"
	eventChildren  = "children" // with --flat: a child was created or deleted
	eventSuspended = "suspended"
	eventResumed   = "resumed"
)

func (a *app) watch() *cobra.Command {
	var o watching
	cmd := &cobra.Command{
		Use:   "watch PATH",
		Short: "Print the changes of nodes as they happen",
		Long: `Watch prints a line for each change of a node and of those below it: created, changed, deleted. The node need
not exist. It uses a persistent watch, so that no change is missed while the connection lasts. "suspended" is the loss
of the connection; what changes until "resumed" is not seen. The first line, "watching", says that later changes are
seen.
With --data the data is read after the change: it may be newer than the event.
Newer servers send no events of nodes that this client may not read. Those that are there at the beginning, and after
the loss of a connection, are a line on the standard error; so is data of --data that may not be read.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				return a.follow(ctx, client, args[0], o)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.flat, "flat", false, "watch the node and its list of children, and nothing further below")
	fs.BoolVar(&o.data, "data", false, "print the data too")
	fs.IntVarP(&o.count, "count", "n", 0, "end after this many changes")
	return cmd
}

var errTooSlow = errors.New("the output is too slow for the changes: some were lost")

func (a *app) follow(ctx context.Context, client *framework.Client, path string, o watching) error {
	changes := make(chan change, maxEvents)
	slow := make(chan struct{}, 1)
	report := func(c change) {
		select {
		case changes <- c:
		default:
			select {
			case slow <- struct{}{}:
			default: // it is known
			}
		}
	}
	watcher := cache.NewPersistentWatcher(client, path, !o.flat)
	watcher.AddListener(func(_ context.Context, ev zk.Event) {
		if c, ok := changeOf(ev); ok {
			report(c)
		}
	})
	first := true
	watcher.AddResetListener(func(context.Context, struct{}) {
		c := change{Event: eventResumed}
		if first {
			c, first = change{Event: eventWatching, Path: path}, false
		}
		report(c)
	})
	remove := client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s == framework.Suspended {
			report(change{Event: eventSuspended})
		}
	})
	defer remove()
	unsupported := make(chan error, 1)
	defer client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		if errors.Is(e.Err, framework.ErrUnimplemented) {
			select {
			case unsupported <- e.Err:
			default: // one is enough
			}
		}
	})()
	if err := watcher.Start(); err != nil {
		return err
	}
	defer func() { _ = watcher.Close() }() // the watch ends with the session
	hidden := make(chan string)
	looking, stopLooking := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer stopLooking()
	w := output.New(a.Stdout, a.format)
	suspended := false
	for seen := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-slow:
			return errTooSlow
		case err := <-unsupported:
			return err
		case text := <-hidden:
			a.say(text)
		case c := <-changes:
			if c.Event == eventResumed && !suspended {
				continue // a watcher that starts beside the first connection sets its watch twice
			}
			suspended = c.Event == eventSuspended || suspended && c.Event != eventResumed
			switch c.Event {
			case eventWatching, eventResumed:
				looks.Go(func() {
					if text := unreadableBelow(looking, client, path, o); text != "" {
						select {
						case hidden <- text:
						case <-looking.Done():
						}
					}
				})
			case eventCreated, eventChanged:
				if !o.data {
					break
				}
				if err := throughOutages(ctx, client, func() error { return c.read(ctx, client) }); err != nil {
					return err
				}
				if c.refused != nil {
					a.say("the data is not readable: " + message(explain(ctx, client, c.refused)))
				}
			}
			if err := a.change(w, c); err != nil {
				return err
			}
			switch c.Event {
			case eventWatching, eventSuspended, eventResumed:
				continue
			}
			if seen++; seen == o.count {
				return nil
			}
		}
	}
}

// unreadableBelow returns a line about the nodes that this client may not read, "" if there are none: there may be no
// events of them.
func unreadableBelow(ctx context.Context, client *framework.Client, path string, o watching) string {
	depth := -1
	if o.flat {
		depth = 0
	}
	t, err := tree.Read(ctx, client, path, tree.Options{Data: true, Depth: depth})
	if err == nil {
		err = unreadable(t, t.Paths())
	}
	if !errors.Is(err, zk.ErrNoAuth) {
		return "" // the node need not exist, and an outage ends with another look
	}
	return "changes may be missing: " + message(explain(ctx, client, err))
}

// changeOf returns what an event says, and false if it is not for the user.
func changeOf(ev zk.Event) (c change, ok bool) {
	switch ev.Type {
	case zk.EventNodeCreated:
		c.Event = eventCreated
	case zk.EventNodeDataChanged:
		c.Event = eventChanged
	case zk.EventNodeDeleted:
		c.Event = eventDeleted
	case zk.EventNodeChildrenChanged:
		c.Event = eventChildren
	default:
		return c, false
	}
	c.Path = ev.Path
	return c, true
}

// read adds the data of the node. One that has gone since has none.
func (c *change) read(ctx context.Context, client *framework.Client) error {
	var s zk.Stat
	data, err := client.GetData().StoringStatIn(&s).ForPath(ctx, c.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		c.refused = err
		return nil
	case err != nil:
		return err
	}
	st := newStat(&s)
	c.Data, c.Stat = output.NewData(data), &st
	return nil
}

// change prints a change at once.
func (a *app) change(w *output.Writer, c change) error {
	c.Time = time.Now().UTC().Truncate(time.Millisecond)
	if a.format != output.Table {
		w.Row(c)
		return w.Err()
	}
	line := fmt.Sprintf("%s  %-9s  %s", stamp(c.Time), c.Event, printable(c.Path))
	if c.Text != nil {
		line += "  " + preview([]byte(*c.Text))
	} else if c.Base64 != "" {
		line += "  base64:" + shorten(c.Base64)
	}
	_, err := fmt.Fprintln(a.Stdout, line)
	return err
}
