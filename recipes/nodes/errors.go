package nodes

import (
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/errtext"
)

var (
	// ErrForeign is wrapped by the error of a node that belongs to somebody else: to a session of another client, or to
	// none although it is to be ephemeral. The node stays as it is, and ours takes its place when it goes. The error
	// matches zk.ErrNodeExists.
	ErrForeign = desired.ErrForeign
	// ErrDeleted is the reason of [Lost] if the node was deleted in a session that lives: by another client, or by this
	// one in another way than Close. It matches zk.ErrNoNode. The methods of a node that has ended return it until Close,
	// and Err after Close, too: see [WithEndWhenDeleted].
	ErrDeleted = desired.ErrDeleted
	// ErrInUse is wrapped by the error of Start if this client keeps a node with this path already.
	ErrInUse = desired.ErrInUse
	// ErrStarted is returned by a second Start. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "nodes: already started")
	// ErrNotStarted is returned by methods that need a started node. It matches framework.ErrNotStarted.
	ErrNotStarted = errtext.Special(errtext.ErrNotStarted, "nodes: not started")
	// ErrClosed is returned by the methods of a closed node. It matches framework.ErrClosed.
	ErrClosed = errtext.Special(errtext.ErrClosed, "nodes: closed")
)
