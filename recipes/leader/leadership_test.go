package leader

import (
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/waitqueue"
)

// Who sees the end of a lost leadership finds that it may not write any more: Do reports the loss by that. It is not
// parallel, because other tests count the goroutines in this package.
func TestLeadershipEndsItsWritesBeforeItsContext(t *testing.T) {
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // it was never asked for anything
	if err := client.BlockUntilConnected(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	early := 0
	for range 20_000 {
		l := newLeadership(t.Context(), client, &waitqueue.Contender{Path: "/a", Session: client.Session()})
		seen := make(chan bool, 1)
		go func() {
			<-l.ctx.Done()
			seen <- l.mayWrite()
		}()
		l.end(ErrLeadershipLost)
		if <-seen {
			early++
		}
	}
	if early > 0 {
		t.Errorf("%d of 20000 may still write", early)
	}
}
