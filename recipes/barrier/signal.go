package barrier

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// signal wakes one waiter when a watch fires, and when the connection is lost or restored.
type signal struct {
	client  *framework.Client
	watcher *callbacks.Watcher
	events  chan zk.Event
}

// eventRoom is more than the usual number of events between two reads. An event without room is dropped; the next read
// shows its effect.
const eventRoom = 16

func newSignal(client *framework.Client) *signal {
	events := make(chan zk.Event, eventRoom)
	return &signal{client: client, events: events, watcher: callbacks.NewChanWatcher(events)}
}

// received drains the events, and reports whether one of them has the type typ.
func (s *signal) received(typ zk.EventType) (found bool) {
	for {
		select {
		case ev := <-s.events:
			found = found || ev.Type == typ
		default:
			return found
		}
	}
}
