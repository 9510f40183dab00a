package leader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// A latch that does not lead has a nil Leadership, which is a lost one.
func TestNilLeadershipIsLost(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	for name, l := range map[string]*leader.Leadership{
		"latch":   leader.NewLeaderLatch(client, electionPath).Leadership(),
		"context": leader.LeadershipOf(ctx),
		"empty":   {},
	} {
		t.Run(name, func(t *testing.T) {
			if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrLeadershipLost) {
				t.Errorf("its context ended with %v", cause)
			}
			if l.Path() != "" || l.Token() != 0 {
				t.Errorf("path %q, token %d", l.Path(), l.Token())
			}
			for way, write := range writes {
				if err := write(ctx, client, l); !errors.Is(err, leader.ErrLeadershipLost) {
					t.Errorf("%s: error is %v", way, err)
				}
			}
			if _, err := l.Client().GetData().ForPath(ctx, "/"); !errors.Is(err, leader.ErrLeadershipLost) {
				t.Errorf("a read: error is %v", err)
			}
		})
	}
}
