package cache

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// Client is the subset of [framework.Client] that the caches use.
type Client interface {
	CheckExists() builders.CheckExists
	GetData() builders.GetData
	GetChildren() builders.GetChildren
	MultiRead() builders.MultiRead
	Sync() builders.Sync
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
	Watches() builders.Watches
	ConnectionStateListeners() callbacks.Listenable[framework.ConnectionState]
	IsConnected() bool
	BlockUntilConnected(ctx context.Context) error
	ReportUnhandled(ctx context.Context, message string, err error)
}

var _ Client = (*framework.Client)(nil)
