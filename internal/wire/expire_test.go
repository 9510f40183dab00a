package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// The connection is lost, and the reader is about to give back what was not sent. The session ends at this moment.
func TestExpireWaitsForAConnectionThatIsBeingDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { return true } // mute
		cfg := dialTo(network{"a:1": s})
		entered, leave := make(chan struct{}), make(chan struct{})
		given := make(chan int, 10)
		cfg.OnUnsent = func(rs []*wire.Request) {
			close(entered)
			<-leave
			given <- len(rs)
			lose(rs)
		}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := s.next(t)
		a := newAnswers()
		for range 400 {
			c.submit(t, get("/x", a))
		}
		synctest.Wait()
		p.cut()
		<-entered
		expired := make(chan struct{})
		go func() { c.Expire(); close(expired) }()
		synctest.Wait()
		select {
		case <-expired:
			t.Errorf("Expire has returned before the unsent requests were given back")
		default:
		}
		close(leave)
		<-expired
		if n := <-given; n == 0 {
			t.Error("all were sent: the test shows nothing")
		}
		c.Abandon()
	})
}

// A watcher's last event of a session is its end.
func TestNoEventBehindTheEndOfTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c := open(t, dialTo(network{"a:1": s}))
		c.want(t, wire.Connected)
		p := s.next(t)
		gate := make(chan struct{})
		first := true
		var events [2]recorder[zk.State]
		for i := range events {
			w := &watcherFunc{func(ev zk.Event) {
				if ev.State == zk.StateDisconnected && first {
					first = false
					<-gate // the reader is slow
				}
				events[i].add(ev.State)
			}}
			if r := c.ask(t, watch(jute.OpGetData, "/x", w, nil)); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		p.cut()
		synctest.Wait()
		done := make(chan struct{})
		go func() { c.Expire(); close(done) }()
		synctest.Wait()
		close(gate)
		<-done
		<-time.After(time.Second)
		c.Abandon()
		for i := range events {
			all := events[i].all()
			if all[len(all)-1] != zk.StateExpired {
				t.Errorf("watcher %d: %v", i, all)
			}
		}
	})
}

type watcherFunc struct{ f func(zk.Event) }

func (f *watcherFunc) Notify(ev zk.Event) { f.f(ev) }
