package locks

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
)

// Client is the part of a [framework.Client] that the locks use.
type Client interface {
	Create() builders.Create
	Delete() builders.Delete
	CheckExists() builders.CheckExists
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
	GetData() builders.GetData
	SetData() builders.SetData
	GetChildren() builders.GetChildren
	Watches() builders.Watches
	Session() *framework.Session
	QuorumHeartbeats() (stop func())
	BlockUntilConnected(ctx context.Context) error
	Namespace() string
	UsingNamespace(ns string) *framework.Client
}

var _ Client = (*framework.Client)(nil)
