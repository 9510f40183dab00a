package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Client is what the recipes of this package need of a [framework.Client].
type Client interface {
	lineup.Client
	CheckExists() builders.CheckExists
	ConnectionStateListeners() callbacks.Listenable[framework.ConnectionState]
	ConnectionStateErrorPolicy() framework.ErrorPolicy
	ReportUnhandled(ctx context.Context, message string, err error)
}

var _ Client = (*framework.Client)(nil)
