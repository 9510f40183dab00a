package leader_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
)

// The machine is suspended for longer than the session lasts. No timer has run yet when the leader is asked.
func TestParticipantMachineSuspendedLosesLeadership(t *testing.T) {
	for name, leads := range map[string]func(latch *leader.LeaderLatch, s *leader.LeaderSelector) bool{
		"latch, HasLeadership": func(latch *leader.LeaderLatch, _ *leader.LeaderSelector) bool {
			return latch.HasLeadership()
		},
		"latch, Leadership": func(latch *leader.LeaderLatch, _ *leader.LeaderSelector) bool {
			return latch.Leadership() != nil
		},
		"selector": func(_ *leader.LeaderLatch, s *leader.LeaderSelector) bool { return s.HasLeadership() },
		"selector, interrupt": func(_ *leader.LeaderLatch, s *leader.LeaderSelector) bool {
			return s.InterruptLeadership()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, suspend := testclient.Suspendable(t, curatortest.NewServerT(t, curatortest.WithoutPort()))
				latch := leader.NewLeaderLatch(client, "/latch")
				must(t, latch.Start())
				defer func() { must(t, latch.Close()) }()
				before := await(t, latch)
				f := newTurns()
				s := startSelector(t, client, f)
				receive(t, f.began, "it leads")
				if !latch.HasLeadership() || !s.HasLeadership() {
					t.Error("it does not lead before")
				}
				suspend()
				if leads(latch, s) {
					t.Error("it leads")
				}
				if again := await(t, latch); again == before {
					t.Error("Await returns the lost leadership")
				}
				if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
					t.Errorf("cause %v", cause)
				}
			})
		})
	}
}
