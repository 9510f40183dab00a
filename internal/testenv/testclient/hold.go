package testclient

import (
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// HoldAnswers holds the answers to a client back, so that what it is told until release is sent together, however slow
// the test is. The client has something to send before release is called.
func HoldAnswers(tb testing.TB, faults *curatortest.Faults, client *framework.Client) (release func()) {
	tb.Helper()
	held := faults.Add(curatortest.Rule{SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldReply})
	return func() {
		tb.Helper()
		Must(tb, held.Wait(testenv.Context(tb)))
		held.Remove()
	}
}
