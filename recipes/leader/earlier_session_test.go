package leader_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// Candidates lose their session at any request, alone or behind another, while the server keeps it (CURATOR-696).
func TestParticipantNodeOfEarlierSessionDoesNotLead(t *testing.T) {
	for name, start := range candidates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contend := func(tb testing.TB, client *framework.Client) testclient.Contender {
				tb.Helper()
				c := start(tb, client)
				return testclient.Contender{Acquire: func(ctx context.Context) (*chaos.Holding, error) {
					l, err := c.next(ctx)
					if err != nil {
						return nil, err
					}
					return &chaos.Holding{Node: l.Path(), Context: l.Context(), Release: func() error { return nil }}, nil
				}, Close: c.close}
			}
			testclient.LoseEarlierSessions(t, testenv.Size(30, 30, 1000), func(*rand.Rand) testclient.Contest {
				return testclient.Contest{Kind: name, Alone: true, Start: contend}
			})
		})
	}
}
