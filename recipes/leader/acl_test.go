package leader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// In Java: TestLeaderAcls.testAclErrorWithLeader (CURATOR-365).
func TestParticipantWithoutPermissionReportsError(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	admin := newClient(t, connect, framework.WithAuth("digest", []byte("admin:secret")))
	forbidden := zk.DigestACL(zk.PermAll, "admin", "secret")
	_, err := admin.Create().WithACL(forbidden...).ForPath(ctx, electionPath, nil)
	must(t, err)
	client := newClient(t, connect)
	unhandled := make(chan error, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, ev framework.UnhandledError) {
		select {
		case unhandled <- ev.Err:
		default: // it comes again and again
		}
	})
	latch, events := startLatch(t, client, "latch")
	f, failed := newTurns(), make(chan error, 1)
	startSelector(t, client, f, leader.WithOnError(func(_ context.Context, err error) { failed <- err }))
	if err := receive(t, failed, "the error"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	if err := receive(t, unhandled, "the error of the latch"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	if latch.HasLeadership() || len(events.received) != 0 || len(f.began) != 0 {
		t.Error("it leads")
	}
	_, err = admin.SetACL().WithACL(builders.OpenACL...).ForPath(ctx, electionPath)
	must(t, err)
	startSelector(t, client, f)
	receive(t, f.began, "another leads")
}
