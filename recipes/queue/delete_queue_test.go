package queue_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// deleteQueue deletes the path of a queue with all that is in it.
func deleteQueue(tb testing.TB, client *framework.Client) {
	tb.Helper()
	ctx := testenv.Context(tb)
	for {
		for _, name := range names(tb, client, queuePath) {
			must(tb, client.Delete().Quietly().ForPath(ctx, queuePath+"/"+name))
		}
		err := client.Delete().Quietly().ForPath(ctx, queuePath)
		if err == nil {
			return
		}
		if !errors.Is(err, zk.ErrNotEmpty) {
			tb.Fatal(err)
		}
	}
}
