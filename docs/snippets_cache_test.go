package docs_test

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

var _ = []any{aCache}

func aCache(ctx context.Context, client *framework.Client) error {
	c := cache.NewCuratorCache(client, "/config")
	c.Listenable().AddListener(cache.ForChanges(func(ctx context.Context, old, node *cache.ChildData) {
		fmt.Printf("%s is now %s\n", node.Path, node.Data)
	}))
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ready(ctx); err != nil { // all that there is is in the cache
		return err
	}
	node, ok := c.Get("/config/rate")
	use(node, ok)
	return nil
}
