package cache

import (
	"errors"

	"github.com/gocurator/curator/internal/telemetry"
)

var (
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("cache: started already")
	// ErrNotStarted is returned by methods that need a started cache.
	ErrNotStarted = errors.New("cache: not started")
	// ErrClosed is returned by the methods of a closed cache.
	ErrClosed error = telemetry.Closed("cache: closed")
)
