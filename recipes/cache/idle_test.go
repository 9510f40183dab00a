package cache_test

import (
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/cache"
)

// The root of the cache and the nodes of the namespace are containers, which a server of ZooKeeper 3.10 removes if they
// are never used.
func TestCacheOfATreeThatWasNeverUsedGetsItsFirstNode(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"a server": false, "an old server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
				if old {
					place.Faults().Add(curatortest.Rule{
						Ops: []string{"addWatch"}, Action: curatortest.ReplyErrorThenCut, Err: framework.ErrUnimplemented,
					})
				}
				client := testclient.Connect(t, place.Addr(),
					framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
				testclient.Must(t, client.CreateContainers(testenv.Context(t), root))
				tree, children := cache.NewCuratorCache(client, root), cache.NewPathChildrenCache(client, root)
				node := cache.NewNodeCache(client, root+"/a")
				testclient.Must(t, tree.Start())
				testclient.Must(t, children.Start(testenv.Context(t), cache.Normal))
				testclient.Must(t, node.Start())
				defer func() {
					for _, end := range []func() error{tree.Close, children.Close, node.Close} {
						testclient.Must(t, end())
					}
				}()
				testclient.Must(t, tree.Ready(testenv.Context(t)))
				idle()
				idle() // the outer nodes go after the inner ones
				ctx := testenv.Context(t)
				testclient.Must(t, tree.Sync(ctx))
				if n := tree.Size(); n != 0 {
					t.Errorf("%d nodes of a tree that is gone", n)
				}
				_, err := client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, root+"/a", []byte("1"))
				testclient.Must(t, err)
				testclient.Must(t, tree.Sync(ctx))
				if n, ok := tree.Get(root + "/a"); !ok || string(n.Data) != "1" || tree.Size() != 2 {
					t.Errorf("got %+v, %t of %d nodes", n, ok, tree.Size())
				}
				testenv.Eventually(t, func() bool {
					return node.CurrentData() != nil && len(children.CurrentData()) == 1
				}, "the other caches have the node")
			})
		})
	}
}
