package docs_test

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

var _ = []any{aCache, aCacheFromJava, aCacheWithOptions, aNodeCache, aPathChildrenCache, aTreeCache}

func aCache(ctx context.Context, client *framework.Client) error {
	c := cache.NewCuratorCache(client, "/config")
	c.AddListener(cache.ForChanges(func(ctx context.Context, old, node *cache.ChildData) {
		fmt.Printf("%s is now %s\n", node.Path, node.Data)
	}))
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ready(ctx); err != nil { // the whole tree is in the cache
		return err
	}
	node, ok := c.Get("/config/rate")
	use(node, ok)
	return nil
}

func aCacheFromJava(ctx context.Context, client *framework.Client) error {
	c := cache.NewCuratorCache(client, "/config")
	c.AddListener(cache.AfterInitialized(
		cache.ForChanges(func(ctx context.Context,
			old, node *cache.ChildData,
		) {
			fmt.Println(node.Path)
		})))
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ready(ctx); err != nil {
		return err // Java has no way to wait
	}
	node, ok := c.Get("/config/rate")
	use(node, ok)
	return nil
}

func aCacheWithOptions(_ context.Context, client *framework.Client) error {
	c := cache.NewCuratorCache(client, "/config",
		cache.WithCompressedData(),
		cache.WithDataNotCached())
	use(c)
	return nil
}

func aNodeCache(ctx context.Context, client *framework.Client) error {
	c := cache.NewNodeCache(client, "/config/rate")
	c.AddListener(
		func(ctx context.Context, node *cache.ChildData) {
			use(node) // nil: it was deleted
		})
	if err := c.StartAndBuild(ctx); err != nil {
		return err
	}
	return c.Close()
}

func aPathChildrenCache(ctx context.Context, client *framework.Client) error {
	c := cache.NewPathChildrenCache(client, "/workers")
	c.AddListener(
		func(ctx context.Context,
			event cache.PathChildrenCacheEvent,
		) {
			if event.Type == cache.ChildAdded {
				use(event.Data)
			}
		})
	err := c.Start(ctx, cache.PostInitializedEvent)
	if err != nil {
		return err
	}
	all := c.CurrentData()
	use(all)
	return c.Close()
}

func aPathChildrenCacheWithoutData(client *framework.Client) *cache.PathChildrenCache {
	c := cache.NewPathChildrenCache(client, "/workers",
		cache.WithDataNotCached()) // cacheData=false
	return c
}

func nodeOfWorkers(ctx context.Context, client *framework.Client) error {
	if err := client.EnsurePath(ctx, "/workers"); err != nil {
		return err
	}
	return nil
}

func aTreeCache(_ context.Context, client *framework.Client) error {
	c := cache.NewTreeCache(client, "/config",
		cache.WithMaxDepth(2))
	c.AddListener(
		func(ctx context.Context, event cache.TreeCacheEvent) {
			if event.Type == cache.TreeNodeUpdated {
				use(event.Data)
			}
		})
	if err := c.Start(); err != nil {
		return err
	}
	children := c.CurrentChildren("/config")
	use(children)
	return c.Close()
}
