package barrier

import (
	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// Client is the part of a [framework.Client] that the barriers use.
type Client interface {
	waitqueue.Client
	CheckExists() builders.CheckExists
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
}

var _ Client = (*framework.Client)(nil)
