package waitqueue

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
)

// Client is the part of a [framework.Client] that a queue uses.
type Client interface {
	Create() builders.Create
	CheckExists() builders.CheckExists
	Delete() builders.Delete
	GetData() builders.GetData
	GetChildren() builders.GetChildren
	Watches() builders.Watches
	Session() *framework.Session
	QuorumHeartbeats() (stop func())
	BlockUntilConnected(ctx context.Context) error
	Namespace() string
	UsingNamespace(ns string) *framework.Client
}

var _ Client = (*framework.Client)(nil)
