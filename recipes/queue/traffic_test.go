package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// clientAt returns a client that connects through a place.
func clientAt(tb testing.TB, place testenv.Place, chroot string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := newClient(tb, place.Addr()+chroot, append(opts, framework.WithDialer(place.DialContext))...)
	must(tb, client.BlockUntilConnected(testenv.Context(tb)))
	return client
}

// outage keeps a client without a connection until it is restored. Its session goes on.
func outage(tb testing.TB, faults *curatortest.Faults, client *framework.Client) (restore func()) {
	tb.Helper()
	session := client.SessionID()
	connects := faults.Add(curatortest.Rule{
		Ops: []string{"connect"}, SessionID: session, Action: curatortest.HoldRequest, MayMiss: true,
	})
	if !faults.Cut(session) {
		tb.Fatal("no connection to cut")
	}
	return connects.Remove
}

// expire ends the session of a client.
func expire(tb testing.TB, place testenv.Place, client *framework.Client) {
	tb.Helper()
	type server interface{ ExpireSession(sessionID int64) error }
	s, ok := place.(server)
	if !ok { // a proxy
		s = testenv.Server(tb)
	}
	must(tb, s.ExpireSession(client.SessionID()))
}

// slowDown has the answers to a client come one by one, with a pause before each, so that it reads and claims ahead.
func slowDown(faults *curatortest.Faults, client *framework.Client) {
	faults.Add(curatortest.Rule{SessionID: client.SessionID(), Action: curatortest.DelayReply, Delay: time.Millisecond})
}

// sent returns the requests in a trace, without those that keep sessions alive.
func sent(faults *curatortest.Faults) map[string]int {
	n := make(map[string]int)
	for _, e := range faults.Trace() {
		if !e.Reply && e.Xid > 0 && e.Op != "heartbeat" {
			n[e.Op]++
		}
	}
	return n
}

func sum(n map[string]int) (all int) {
	for _, m := range n {
		all += m
	}
	return all
}

// awaitSilence waits until all clients have sent what they have to send, and returns the requests since the trace was
// reset.
func awaitSilence(tb testing.TB, faults *curatortest.Faults) map[string]int {
	tb.Helper()
	testclient.AwaitSilence(tb, faults)
	return sent(faults)
}

// names returns the names of nodes below a path, in order; none if there is no such path.
func names(tb testing.TB, client *framework.Client, path string) []string {
	tb.Helper()
	all, err := client.GetChildren().ForPath(testenv.Context(tb), path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// awaitEmpty waits until neither items nor locks are left, as a client sees it.
func awaitEmpty(tb testing.TB, client *framework.Client) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		return len(names(tb, client, queuePath))+len(names(tb, client, lockPath)) == 0
	}, "nothing is left")
}

// putAll puts items and waits until they are in the queue.
func putAll(tb testing.TB, q putter, items ...string) {
	tb.Helper()
	ctx := testenv.Context(tb)
	for _, item := range items {
		must(tb, q.Put(ctx, item))
	}
	must(tb, q.FlushPuts(ctx))
}

type putter interface {
	Put(ctx context.Context, item string) error
	FlushPuts(ctx context.Context) error
}
