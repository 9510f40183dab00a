package testclient

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The helpers here are for recipes whose nodes stand in line: locks and elections.

// NoRetries is a policy that retries nothing.
var NoRetries = framework.WithRetryPolicy(retry.NTimes(0, time.Millisecond))

// KnowsItsNode reports whether a client has got the answer to its create, and gone on to read. Without retries it must
// not lose that answer.
func KnowsItsNode(faults *curatortest.Faults) bool {
	trace := faults.Trace()
	created := slices.IndexFunc(trace, func(e curatortest.TraceEntry) bool { return e.Reply && e.Op == "create2" })
	return created >= 0 && slices.ContainsFunc(trace[created:], func(e curatortest.TraceEntry) bool {
		return !e.Reply && (e.Op == "getData" || e.Op == "getChildren2")
	})
}

// Suspendable returns a client of a server in memory, and what suspends its machine for an hour, which is longer than
// its session lasts. No timer has run yet when that returns.
func Suspendable(tb testing.TB, server *curatortest.Server) (client *framework.Client, suspend func()) {
	tb.Helper()
	var ahead atomic.Int64 // of the wall clock
	wall := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	client = Connect(tb, server.ConnectString(), framework.WithDialer(server.DialContext),
		hook.WallClock(wall).(framework.Option))
	return client, func() { ahead.Add(int64(time.Hour)) }
}

// DeletedWhileReadsAreRefused runs a test for each error with which a server may refuse reads for a while. take makes
// the node of a client without retries, and returns its path. The read that watches that node is refused. Meanwhile
// another client deletes it, and wantLost checks that the owner notices when the reads are answered again.
func DeletedWhileReadsAreRefused(
	t *testing.T, take func(t *testing.T, client *framework.Client) (node string, wantLost func()),
) {
	t.Helper()
	for _, refusal := range []error{jute.ErrThrottledOp, jute.ErrSystem, zk.ErrAPIError, zk.ErrNoAuth} {
		t.Run(fmt.Sprint(refusal), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				dial := framework.WithDialer(server.DialContext)
				refused := server.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: refusal,
				})
				node, wantLost := take(t, Start(t, server.ConnectString(), dial, NoRetries))
				Must(t, refused.Wait(testenv.Context(t)))
				Must(t, Start(t, server.ConnectString(), dial).Delete().ForPath(testenv.Context(t), node))
				refused.Remove()
				wantLost()
			})
		})
	}
}
