package testclient

import (
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// HoldAnswers holds the answers to a client back until release is called, so that the client sends together what the
// test begins meanwhile, however slow that is. The client must have something to send before release.
func HoldAnswers(tb testing.TB, faults *curatortest.Faults, client *framework.Client) (release func()) {
	tb.Helper()
	held := faults.Add(curatortest.Rule{SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldReply})
	return func() {
		tb.Helper()
		Must(tb, held.Wait(testenv.Context(tb)))
		held.Remove()
	}
}
