package discovery

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/errtext"
)

var (
	// ErrNoInstance is returned if no instance can be had: none is registered, or each is disabled, down or filtered
	// out. It matches zk.ErrNoNode.
	ErrNoInstance = errtext.Special(zk.ErrNoNode, "discovery: no instance")
	// ErrNotRegistered is returned by Update for an instance that this process has not registered.
	ErrNotRegistered = errtext.Special(zk.ErrNoNode, "discovery: not registered here")
	// ErrForeign is wrapped by the error of an instance whose node belongs to the session of another client. The node
	// stays, and ours takes its place when it goes. It matches zk.ErrNodeExists.
	ErrForeign = desired.ErrForeign
	// ErrInUse is wrapped by the error of Register if another ServiceDiscovery of this client has the instance.
	ErrInUse = desired.ErrInUse
	// ErrStarted is returned by a second Start. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "discovery: already started")
	// ErrNotStarted is returned by methods that need Start before. It matches framework.ErrNotStarted.
	ErrNotStarted = errtext.Special(errtext.ErrNotStarted, "discovery: not started")
	// ErrClosed is returned after Close. It matches framework.ErrClosed.
	ErrClosed = errtext.Special(errtext.ErrClosed, "discovery: closed")
)
