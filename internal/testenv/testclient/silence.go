package testclient

import (
	"slices"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// silence is how long nothing has to be sent until nobody is expected to send any more. An answer may take longer than
// that: a request without one is waited for, up to longestReply, because the answer may be lost.
const (
	silence      = 500 * time.Millisecond
	longestReply = 20 * silence
)

// AwaitSilence waits until all clients have sent what they have to send, and have the answers, unless one of held holds
// answers back. It does not heed what keeps sessions alive.
func AwaitSilence(tb testing.TB, faults *curatortest.Faults, held ...*curatortest.Injection) {
	tb.Helper()
	ctx := testenv.Context(tb)
	for before, since := -1, time.Now(); ; {
		requests, open := 0, 0
		for _, e := range faults.Trace() {
			switch {
			case e.Xid <= 0, e.Op == "heartbeat":
			case e.Reply:
				open--
			default:
				requests++
				open++
			}
		}
		switch {
		case requests != before:
			before, since = requests, time.Now()
		case open <= 0, slices.ContainsFunc(held, holds), time.Since(since) > longestReply:
			return
		}
		select {
		case <-time.After(silence):
		case <-ctx.Done():
			tb.Fatalf("requests do not end: there are %d", requests)
		}
	}
}

func holds(in *curatortest.Injection) bool { return in.Hits() > 0 }
