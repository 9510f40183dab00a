package nodes

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

// Option configures a node.
type Option interface{ apply(*settings) }

type settings struct {
	name           string
	acl            []zk.ACL
	protected      bool
	withoutParents bool
	childName      string // of a PersistentTTLNode
	touchFactor    int
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithName sets the name of the node in metrics. Use few different names: each is a metric attribute. Not in Java.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithProtection puts a unique id before the name of the node, so that a sequential node is found again whose create
// has no answer. The id stays the same when the node is created again. In Java: the argument useProtection.
func WithProtection() Option { return option(func(s *settings) { s.protected = true }) }

// WithACL sets the ACL of the node. The default is that of the client's ACLProvider. Without the permission to read,
// the node is compared by its version, if the server shows that.
func WithACL(acl ...zk.ACL) Option {
	acl = slices.Clone(acl)
	return option(func(s *settings) { s.acl = acl })
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

func settingsOf(opts []Option) settings {
	s := settings{childName: defaultChildName, touchFactor: defaultTouchFactor}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
