package cache

import (
	"github.com/gocurator/curator/internal/errtext"
)

var (
	// ErrStarted is returned by a second Start. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "cache: already started")
	// ErrNotStarted is returned by methods that need a started cache. It matches framework.ErrNotStarted.
	ErrNotStarted = errtext.Special(errtext.ErrNotStarted, "cache: not started")
	// ErrClosed is returned by the methods of a closed cache. It matches framework.ErrClosed.
	ErrClosed = errtext.Special(errtext.ErrClosed, "cache: closed")
)
