package leader_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// election is what latches and selectors tell of those who take part.
type election interface {
	ID() string
	Participants(ctx context.Context) ([]leader.Participant, error)
	Leader(ctx context.Context) (leader.Participant, error)
}

// In Java: TestLeaderSelectorParticipants.testBasic, TestLeaderSelectorParticipants.testId.
func TestAllSeeTheSameParticipants(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, client *framework.Client, id string) election{
		"latches": func(t *testing.T, client *framework.Client, id string) election {
			t.Helper()
			latch, _ := startLatch(t, client, id)
			return latch
		},
		"selectors": func(t *testing.T, client *framework.Client, id string) election {
			t.Helper()
			return startSelector(t, client, newTurns(), leader.WithID(id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testenv.Context(t)
			connect := testenv.ConnectString(t)
			clients := []*framework.Client{newClient(t, connect), newClient(t, connect)}
			var all []election
			var want []leader.Participant
			for i := range 6 {
				id := fmt.Sprint(i)
				all = append(all, start(t, clients[i%len(clients)], id))
				want = append(want, leader.Participant{ID: id, IsLeader: i == 0})
				testenv.Eventually(t, func() bool {
					seen, err := all[0].Participants(ctx)
					return err == nil && len(seen) == len(want)
				}, "it takes part")
			}
			for i, e := range all {
				seen, err := e.Participants(ctx)
				must(t, err)
				if diff := cmp.Diff(want, seen); diff != "" {
					t.Errorf("%s sees (-want +got):\n%s", e.ID(), diff)
				}
				if who, err := e.Leader(ctx); err != nil || who != want[0] || e.ID() != want[i].ID {
					t.Errorf("%s takes %+v for the leader, error %v", e.ID(), who, err)
				}
			}
		})
	}
}
