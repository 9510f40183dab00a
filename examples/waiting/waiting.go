// Package waiting has what all examples say when there is no server.
package waiting

import (
	"context"
	"time"

	"github.com/gocurator/curator/framework"
)

// patience is how long an example waits for a server before it says so.
const patience = 2 * time.Second

// ForServer waits until the client is connected. After two seconds it says once that it is waiting for a server. It
// fails when ctx ends, with the error of the last attempt to connect.
func ForServer(
	ctx context.Context, client *framework.Client, connect string, say func(format string, args ...any),
) error {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := client.BlockUntilConnected(soon); err == nil || soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	say("waiting for a ZooKeeper server at %s", connect)
	return client.BlockUntilConnected(ctx)
}
