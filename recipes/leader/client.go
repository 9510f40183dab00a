package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// Client is the part of a [framework.Client] that the recipes of this package use.
type Client interface {
	waitqueue.Client
	CheckExists() builders.CheckExists
	ConnectionStateListeners() callbacks.Listenable[framework.ConnectionState]
	ConnectionStateErrorPolicy() framework.ErrorPolicy
	ReportUnhandled(ctx context.Context, message string, err error)
}

var _ Client = (*framework.Client)(nil)
