package reply

import (
	"fmt"

	"github.com/gocurator/curator/framework"
)

// MaxLosses is how many connections in a row may be lost with a single request under way that has more data than
// SuspectSize. After that the request counts as the cause: a server closes the connection for a request that is too
// large for it.
const (
	MaxLosses   = 8
	SuspectSize = 4 << 10
)

// LostEachTime returns the error of a request with so much data that was lost MaxLosses times.
func LostEachTime(bytes int) error {
	return fmt.Errorf("%w each of the %d times that its %d bytes were sent: compare jute.maxbuffer of the servers",
		framework.ErrConnectionLoss, MaxLosses, bytes)
}
