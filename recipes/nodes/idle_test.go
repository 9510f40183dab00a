package nodes_test

import (
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/nodes"
)

// The parents are containers, which a server of ZooKeeper 3.10 removes if they are never used, and every server if
// their last child is gone.
func TestPersistentNodeParentsThatWereRemovedAreCreatedAgain(t *testing.T) {
	t.Parallel()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		client := testclient.Connect(t, place.Addr(),
			framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
		ctx := testenv.Context(t)
		testclient.Must(t, client.CreateContainers(ctx, "/members/of/group"))
		for range 2 {
			for range 5 { // the outer nodes go after the inner ones
				idle()
			}
			n := nodes.NewPersistentNode(client, "/members/of/group/a", builders.Ephemeral, nil)
			m := nodes.NewGroupMember(client, "/members/of/group", "b", nil)
			testclient.Must(t, n.Start())
			testclient.Must(t, m.Start())
			ctx := testenv.Context(t)
			testclient.Must(t, n.WaitForInitialCreate(ctx))
			testclient.Must(t, m.Ready(ctx))
			testenv.Eventually(t, func() bool { return len(m.CurrentMembers()) == 2 }, "both are members")
			testclient.Must(t, n.Close(ctx))
			testclient.Must(t, m.Close(ctx))
		}
	})
}
