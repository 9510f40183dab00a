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

// election has the methods of latches and selectors that return participants.
type election interface {
	participant
	ID() string
	Leader(ctx context.Context) (leader.Participant, error)
}

// In Java: TestLeaderSelectorParticipants.testBasic, TestLeaderSelectorParticipants.testId.
func TestParticipantsAreTheSameForEachOfThem(t *testing.T) {
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
				awaitParticipants(t, all[0], len(want))
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

// As in Java, where the default data is the address: a selector without an id does not set the data of its node, and a
// latch without one sets it to nothing.
func TestSelectorWithoutIDHasDefaultData(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	newOf := func(address string) *framework.Client {
		return newClient(t, connect, steady, framework.WithDefaultData([]byte(address)))
	}
	f := newTurns()
	s := startSelector(t, newOf("10.0.0.1"), f)
	receive(t, f.began, "it leads")
	startSelector(t, newOf("10.0.0.2"), newTurns(), leader.WithID(""))
	want := []leader.Participant{{ID: "10.0.0.1", IsLeader: true}, {ID: "10.0.0.2"}}
	var got []leader.Participant
	testenv.Eventually(t, func() (both bool) {
		var err error
		got, err = s.Participants(ctx)
		return err == nil && len(got) == len(want)
	}, "both take part")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selectors (-want +got):\n%s", diff)
	}
	if s.ID() != "" {
		t.Errorf("id %q", s.ID())
	}

	latch, _ := startLatch(t, newOf("10.0.0.3"), "")
	await(t, latch)
	got, err := latch.Participants(ctx)
	must(t, err)
	if diff := cmp.Diff([]leader.Participant{{IsLeader: true}}, got); diff != "" {
		t.Errorf("latches (-want +got):\n%s", diff)
	}
}

// A client that compresses sees the participants of one that does not, and their leader.
func TestParticipantsWithoutCompressionAreSeen(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	plain, packed := newClient(t, connect), newClient(t, connect, framework.WithCompression())
	first, _ := startLatch(t, plain, "plain")
	await(t, first)
	second, _ := startLatch(t, packed, "packed")
	want := []leader.Participant{{ID: "plain", IsLeader: true}, {ID: "packed"}}
	var got []leader.Participant
	testenv.Eventually(t, func() (both bool) {
		var err error
		got, err = second.Participants(ctx)
		must(t, err)
		return len(got) == len(want)
	}, "both take part")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for who, err := range leader.ObserveLatch(ctx, packed, electionPath) {
		must(t, err)
		if who != want[0] {
			t.Errorf("the leader is %+v", who)
		}
		break
	}
}
