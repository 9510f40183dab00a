package wire_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

type countedWatcher struct{ n int }

func (*countedWatcher) Notify(zk.Event) {}

// An answer that is an error is an answer: the connections that end between do not count as a row.
func TestHangUpErrorIsAnAnswer(t *testing.T) {
	for name, op := range map[string]jute.Op{"removeWatches": jute.OpRemoveWatches, "addWatch": jute.OpAddWatch} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				n := 0
				s.serve = func(p *peer, r *request) bool {
					if r.Op != op {
						return false
					}
					if n++; n%2 == 1 {
						p.cut()
					} else {
						p.no(r, jute.CodeNoWatcher)
					}
					return true
				}
				c, _ := connectPiped(t, s)
				for i := range 10 {
					answered := make(chan *wire.Request, 1)
					r := &wire.Request{
						Request: jute.Request{Op: op, Path: "/a", Flags: 1}, Watcher: &countedWatcher{i},
						Handler: handlerFunc(func(r *wire.Request) { answered <- r }),
					}
					for c.Submit(r, false) != nil {
						<-time.After(10 * time.Millisecond)
					}
					synctest.Wait()
					<-answered
					if errors.Is(r.Err, jute.ErrUnimplemented) {
						t.Fatalf("request %d: %v", i, r.Err)
					}
					<-time.After(time.Second)
				}
			})
		})
	}
}
