package queue

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
)

// Client has the methods of [framework.Client] that the queues need.
type Client interface {
	Create() builders.Create
	Delete() builders.Delete
	GetData() builders.GetData
	GetChildren() builders.GetChildren
	CheckExists() builders.CheckExists
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
	Watches() builders.Watches
	Sync() builders.Sync
	Session() *framework.Session
	QuorumHeartbeats() (stop func())
	Namespace() string
	UsingNamespace(ns string) *framework.Client
	BlockUntilConnected(ctx context.Context) error
	ReportUnhandled(ctx context.Context, message string, err error)
}

var _ Client = (*framework.Client)(nil)
