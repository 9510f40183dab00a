package leader_test

import (
	"context"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// The nodes of the namespace and of the path are containers, which a server of ZooKeeper 3.10 removes if they are never
// used.
func TestParticipantUnusedContainersRemovedLeads(t *testing.T) {
	t.Parallel()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		newClient := func() *framework.Client {
			return newClient(t, place.Addr(), framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
		}
		client, other := newClient(), newClient()
		if err := client.CreateContainers(testenv.Context(t), "/election"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen, ended := make(chan leader.Participant, 10), make(chan struct{})
		go func() {
			defer close(ended)
			for p, err := range leader.ObserveLatch(ctx, client, "/election") {
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				seen <- p
			}
		}()
		if p := <-seen; p != (leader.Participant{}) {
			t.Errorf("leader %+v at first", p)
		}
		latch := leader.NewLeaderLatch(other, "/election", leader.WithID("me"))
		selected := make(chan struct{})
		selector := leader.NewLeaderSelector(other, "/selection", func(context.Context) error {
			close(selected)
			return nil
		})
		if p, err := latch.Participants(testenv.Context(t)); len(p) != 0 || err != nil {
			t.Errorf("participants %v, %v", p, err)
		}
		idle()
		idle() // the outer nodes go after the inner ones
		if p, err := latch.Participants(testenv.Context(t)); len(p) != 0 || err != nil {
			t.Errorf("participants %v, %v", p, err)
		}
		for _, err := range []error{latch.Start(), selector.Start()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			for _, err := range []error{latch.Close(), selector.Close()} {
				if err != nil {
					t.Error(err)
				}
			}
		}()
		for p := range seen {
			if p.ID == "me" {
				break
			}
		}
		<-selected
		cancel()
		<-ended
	})
}
