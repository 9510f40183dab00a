package barrier

import (
	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Client is what the barriers need of a [framework.Client].
type Client interface {
	lineup.Client
	CheckExists() builders.CheckExists
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
}

var _ Client = (*framework.Client)(nil)
