package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// TestEarlierSession has a client that relies on all nodes that it has created. EarlierSession finds out if it does not
// give them up with their session.
func TestEarlierSession(t *testing.T) {
	for _, tt := range []struct {
		name    string
		context func(*framework.Session) context.Context
		alone   bool // in which case the client would have to look at the line, too
		want    string
	}{
		{"careful", (*framework.Session).Context, false, ""},
		{"careless", func(*framework.Session) context.Context { return context.Background() }, false, "a node of session"},
		{"blind", (*framework.Session).Context, true, "of the earlier session"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				s := chaos.New(t)
				kept, failed := 0, ""
				for n := 0; n < 20 && failed == ""; n++ {
					client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext),
						framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
					root := fmt.Sprint("/", n)
					e := &chaos.EarlierSession{Server: server, Client: client, Root: root, Alone: tt.alone}
					e.Acquire = func(ctx context.Context) (*chaos.Holding, error) {
						session := client.Session()
						node, err := client.Create().CreatingParentContainersIfNeeded().WithMode(builders.EphemeralSequential).
							ForPath(ctx, root+"/n-", nil)
						if err != nil {
							return nil, err
						}
						return &chaos.Holding{
							Node: node, Context: tt.context(session),
							Release: func() error { return client.Delete().Quietly().ForPath(ctx, node) },
						}, nil
					}
					had, err := e.Run(t.Context(), s, s.Random(n))
					if had {
						kept++
					}
					if err != nil {
						failed = err.Error()
					}
				}
				if kept == 0 || tt.want == "" && failed != "" || !strings.Contains(failed, tt.want) {
					t.Errorf("nodes were kept %d times, failed with %q", kept, failed)
				}
			})
		})
	}
}
