package leader_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
)

const electionPath = "/election"

var (
	newClient = testclient.Start
	must      = testclient.Must
)

// newProxy returns a proxy to the server, and a connect string through it.
func newProxy(tb testing.TB) (proxy *curatortest.Proxy, connect, direct string) {
	tb.Helper()
	chroot := testenv.Chroot(tb)
	proxy, connect = testclient.Proxy(tb, chroot)
	return proxy, connect, testenv.Addr(tb) + chroot
}

// history is what the listener of a latch gets.
type history struct {
	tb       testing.TB
	name     string
	received chan leader.LatchEvent

	mu   sync.Mutex
	last bool
}

// startLatch starts a latch; its listener fails the test if beginnings and ends do not come in turn.
func startLatch(
	tb testing.TB, client *framework.Client, id string, opts ...leader.LatchOption,
) (*leader.LeaderLatch, *history) {
	tb.Helper()
	latch := leader.NewLeaderLatch(client, electionPath, append(opts, leader.WithID(id))...)
	h := &history{tb: tb, name: id, received: make(chan leader.LatchEvent, 1000)}
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		h.mu.Lock()
		if ev.IsLeader == h.last || ev.IsLeader != (ev.Leadership != nil) {
			tb.Errorf("%s gets %+v after %t", id, ev, h.last)
		}
		h.last = ev.IsLeader
		h.mu.Unlock()
		h.received <- ev
	})
	must(tb, latch.Start())
	tb.Cleanup(func() { must(tb, latch.Close()) })
	return latch, h
}

// want takes what comes next.
func (h *history) want(isLeader bool) leader.LatchEvent {
	h.tb.Helper()
	select {
	case ev := <-h.received:
		if ev.IsLeader != isLeader {
			h.tb.Errorf("%s leads: %t", h.name, ev.IsLeader)
		}
		return ev
	case <-testenv.Context(h.tb).Done():
		h.tb.Fatalf("%s gets no event that it leads: %t", h.name, isLeader)
	}
	return leader.LatchEvent{}
}

func await(tb testing.TB, latch *leader.LeaderLatch) *leader.Leadership {
	tb.Helper()
	l, err := latch.Await(testenv.Context(tb))
	must(tb, err)
	return l
}

// awaitParticipants waits until so many take part.
func awaitParticipants(tb testing.TB, x participant, want int) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		all, err := x.Participants(testenv.Context(tb))
		return err == nil && len(all) == want
	}, "all take part")
}

// awaitNoNode waits until no participant has a node.
func awaitNoNode(tb testing.TB, connect string) {
	tb.Helper()
	_, chroot, _ := strings.Cut(connect, "/")
	testenv.Eventually(tb, func() bool {
		return len(testenv.Children(tb, "/"+chroot+electionPath)) == 0
	}, "no node is left")
}

// cutAfter cuts the connection when the server has done request k.
func cutAfter(k int) curatortest.Rule {
	return curatortest.Rule{Skip: k, Count: 1, Action: curatortest.CutAfter, MayMiss: k > 0}
}

// candidate takes part in an election. next waits for its next leadership; a selector's next returns each of them, also
// when ctx has ended.
type candidate struct {
	next      func(ctx context.Context) (*leader.Leadership, error)
	close     func() error
	keepsNode bool // from term to term, as long as its session lives
}

// forEachCandidate runs a test for a latch and for a selector.
func forEachCandidate(
	t *testing.T, test func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate),
) {
	t.Helper()
	for name, start := range candidates {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

// candidates are both kinds of them, by name.
var candidates = map[string]func(tb testing.TB, client *framework.Client) candidate{
	"latch": func(tb testing.TB, client *framework.Client) candidate {
		tb.Helper()
		latch, _ := startLatch(tb, client, "")
		return candidate{latch.Await, latch.Close, true}
	},
	"selector": func(tb testing.TB, client *framework.Client) candidate {
		tb.Helper()
		f := newTurns()
		s := startSelector(tb, client, f, leader.WithAutoRequeue())
		return candidate{func(ctx context.Context) (*leader.Leadership, error) {
			select {
			case turn := <-f.began:
				return leader.LeadershipOf(turn), nil
			case <-ctx.Done():
			}
			select {
			case turn := <-f.began:
				return leader.LeadershipOf(turn), nil
			default:
				return nil, ctx.Err()
			}
		}, s.Close, false}
	},
}

func inVirtualTime(t *testing.T, test func(t *testing.T, server *curatortest.Server, client *framework.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		test(t, server, newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext)))
	})
}
