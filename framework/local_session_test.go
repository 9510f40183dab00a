package framework_test

import (
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A local session is known to one server alone: it does not move to another one, and has no ephemeral nodes.
func TestLocalSessions(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	for _, tt := range []struct {
		name      string
		upgrading string
	}{{"for ever", "false"}, {"until the first ephemeral node", "true"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cluster, err := curatortest.NewRealCluster(3, curatortest.WithObservers(1),
				curatortest.WithConfig("localSessionsEnabled", "true"),
				curatortest.WithConfig("localSessionsUpgradingEnabled", tt.upgrading))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { must(t, cluster.Close()) })
			ctx := testenv.Context(t)
			servers := cluster.Servers()
			voter, observer := servers[0], servers[2]
			order := framework.WithServerOrder(framework.AsGiven())
			ends := newClient(t, observer.Addr()+","+voter.Addr(), order)
			keeps := newClient(t, observer.Addr()+","+voter.Addr(), order)
			endStates, keepStates := record(ends), record(keeps)
			for client, states := range map[*framework.Client]states{ends: endStates, keeps: keepStates} {
				start(t, client)
				states.want(t, connected)
			}
			_, err = ends.Create().ForPath(ctx, "/persistent", nil)
			must(t, err)
			mutex := locks.NewInterProcessMutex(keeps, "/lock")
			hold, err := mutex.Acquire(ctx)
			if tt.upgrading == "false" {
				wantErr(t, "Acquire", err, framework.ErrEphemeralOnLocalSession)
				_, err = keeps.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/e", nil)
				wantErr(t, "Create", err, framework.ErrEphemeralOnLocalSession)
			} else {
				must(t, err)
			}
			must(t, observer.Kill())
			endStates.await(t, lost, reconnected)
			if tt.upgrading == "false" {
				return
			}
			keepStates.want(t, suspended, reconnected)
			if err := hold.Context().Err(); err != nil {
				t.Errorf("the hold has ended: %v", err)
			}
			must(t, hold.Release(ctx))
		})
	}
}
