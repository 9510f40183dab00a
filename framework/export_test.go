package framework

import (
	"sync"

	"github.com/gocurator/curator/internal/dispatch"
)

// WithWallClock sets the wall clock by which a suspension of the machine is noticed.
var WithWallClock = withWallClock

// HoldLibrary holds up the callbacks of the library, until goOn is called.
func HoldLibrary(c *Client) (goOn func()) {
	held := make(chan struct{})
	c.core.dispatcher.PushLibrary(dispatch.Func(func() { <-held }))
	return sync.OnceFunc(func() { close(held) })
}
