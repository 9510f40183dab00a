package nodes

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

// NodeOption configures a [PersistentNode].
type NodeOption interface{ applyNode(*settings) }

// TTLOption configures a [PersistentTTLNode].
type TTLOption interface{ applyTTL(*settings) }

// Option configures a [PersistentNode], a [PersistentTTLNode] or a [GroupMember].
type Option interface {
	NodeOption
	TTLOption
}

type settings struct {
	name           string
	acl            []zk.ACL
	protected      bool
	withoutParents bool
	endWhenDeleted bool
	childName      string // of a PersistentTTLNode
	touchFactor    int
}

type option func(*settings)

func (o option) applyNode(s *settings) { o(s) }
func (o option) applyTTL(s *settings)  { o(s) }

type nodeOption func(*settings)

func (o nodeOption) applyNode(s *settings) { o(s) }

type ttlOption func(*settings)

func (o ttlOption) applyTTL(s *settings) { o(s) }

// WithName sets the name of the node in metrics. Use few different names: each is a metric attribute. Not in Java.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithProtection puts a unique id before the name of the node, so that a sequential node is found again whose create
// has no answer. The id stays the same when the node is created again. In Java: the argument useProtection.
func WithProtection() NodeOption { return nodeOption(func(s *settings) { s.protected = true }) }

// WithACL sets the ACL of the node. The default is that of the client's ACLProvider. Without the permission to read,
// the node is compared by its version, if the server shows that.
func WithACL(acl ...zk.ACL) Option {
	acl = slices.Clone(acl)
	return option(func(s *settings) { s.acl = acl })
}

// WithEndWhenDeleted ends the node when it is deleted by anything but Close, so that an operator can stop a process by
// the deletion of its node: [PersistentNode.Done] is closed, and the node is not created again. A deletion by the same
// client ends it too. The end of a session is no deletion: the node is created in the next one, also if it was deleted
// in an outage that the session has not outlived. An ephemeral node ends also if another client has its place by then.
// A node that is not ephemeral does not end if it is deleted and made again at once: nothing marks it as that of
// another client. Not in Java, where the program compares the session in a watcher of its own.
func WithEndWhenDeleted() NodeOption {
	return nodeOption(func(s *settings) { s.endWhenDeleted = true })
}

// WithoutParents leaves missing parents missing: the node is refused until they are there. The default creates them as
// containers. In Java: the argument useParentCreation.
func WithoutParents() Option { return option(func(s *settings) { s.withoutParents = true }) }

// validateName returns an error if name cannot be the name of a node.
func validateName(what, name string) error {
	if zkpath.Validate("/"+name, false) != nil || zkpath.Node(name) != name || name == "" {
		return fmt.Errorf("%w: the %s %q is no name of a node", zk.ErrInvalidPath, what, name)
	}
	return nil
}

// settingsOf applies options of one kind.
func settingsOf[O any](opts []O, apply func(O, *settings)) settings {
	s := settings{childName: defaultChildName, touchFactor: defaultTouchFactor}
	for _, o := range opts {
		apply(o, &s)
	}
	return s
}
