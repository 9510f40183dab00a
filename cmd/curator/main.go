// Command curator uses a ZooKeeper ensemble from a shell, with the recipes of Curator for Go. "curator help" lists its
// subcommands.
package main

import (
	"context"
	"os"

	"github.com/gocurator/curator/cmd/curator/internal/cli"
)

func main() {
	ctx := context.Background() //nolint:forbidigo // the root context of the program
	os.Exit(cli.Main(ctx, cli.System()))
}
