package barrier

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// alarm wakes who waits: when a watch fires, and when something happens to the connection.
type alarm struct {
	client  Client
	watcher *callbacks.Watcher
	heard   chan zk.Event
}

// manyEvents is more than anybody hears between two looks: an event that finds no room is lost, and the next look has to
// make up for it.
const manyEvents = 16

// newAlarm returns an alarm that has room for so many events beside those.
func newAlarm(client Client, more int) *alarm {
	heard := make(chan zk.Event, manyEvents+more)
	return &alarm{client: client, heard: heard, watcher: callbacks.NewChanWatcher(heard)}
}

// heardOf reports whether an event of that type is among those heard and not yet taken, and takes them all.
func (a *alarm) heardOf(typ zk.EventType) (found bool) {
	for {
		select {
		case ev := <-a.heard:
			found = found || ev.Type == typ
		default:
			return found
		}
	}
}

// off takes the watch of a node back, if it has not fired.
func (a *alarm) off(ctx context.Context, path string) {
	ctx = a.client.Telemetry().Aside(ctx)
	_ = a.client.Watches().Remove(a.watcher).Guaranteed().Quietly().InBackground(lineup.Ignore).ForPath(ctx, path)
}
