package barrier

import (
	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Client is the part of a [framework.Client] that the barriers use.
type Client interface {
	lineup.Client
	CheckExists() builders.CheckExists
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
}

var _ Client = (*framework.Client)(nil)
