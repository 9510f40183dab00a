package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Close during a move lets what was submitted before have its answer, and says goodbye: else the ephemeral nodes of the
// session stay for its timeout.
func TestCloseDuringAMoveSaysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newServer(t), newServer(t)
		requested := make(chan struct{}, 1)
		second.greet = func(p *peer, req jute.ConnectRequest) bool {
			if req.SessionID != 1 {
				return false
			}
			requested <- struct{}{}
			<-time.After(500 * time.Millisecond) // busy
			p.expire()
			return true
		}
		goodbye := make(chan struct{}, 1)
		first.serve = func(p *peer, r *request) bool {
			switch r.Op {
			case jute.OpGetData:
				<-time.After(time.Second)
			case jute.OpCloseSession:
				goodbye <- struct{}{}
			}
			return false
		}
		cfg := dialTo(network{"a:1": first, "b:1": second})
		cfg.Servers = []string{"a:1"}
		c := open(t, cfg)
		first.next(t)
		a := newAnswers()
		for !c.IsConnected() {
			<-time.After(time.Millisecond)
		}
		c.UpdateServers([]string{"b:1"})
		receive(t, requested)
		c.submit(t, get("/a", a))
		c.Close()
		if r := receive(t, a); r.Err != nil {
			t.Errorf("submitted before Close: %v", r.Err)
		}
		select {
		case <-goodbye:
		default:
			t.Error("the server did not get the end of the session")
		}
	})
}
