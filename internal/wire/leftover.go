package wire

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// A watch of the server may not be removed while a request is under way that sets it for somebody else: it is left to
// that one. When the server refuses the request, nobody has the watch, and it would stay.

// leftover removes it.
type leftover struct{}

func (leftover) Notify(zk.Event)   {}
func (leftover) Answered(*Request) {}

// leave notes that the watches of path are left to somebody who is to come. mu is held, here and below.
func (l *link) leave(path string) {
	if l.leftovers == nil {
		l.leftovers = make(map[string]struct{})
	}
	l.leftovers[path] = struct{}{}
}

// clear removes the watch of path if it was left and nobody has come.
func (l *link) clear(path string) {
	if _, left := l.leftovers[path]; !left || l.c.watches.has(WatchAny, path, nil) {
		return
	}
	for i := range l.flight.len() {
		if o := l.flight.at(i); o.Watcher != nil && withChroot(o.Path, o.chroot(l.c)) == path {
			return
		}
	}
	delete(l.leftovers, path)
	l.submit(&Request{
		Request:  jute.Request{Op: jute.OpRemoveWatches, Path: path, Flags: WatchAny},
		Absolute: true, Watcher: leftover{}, Handler: leftover{},
	})
}
