package nodes

import (
	"fmt"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// PersistentTTLNode keeps a node that outlives this process by a limited time. The node is a container with a child
// that has a TTL, and the child is written again from time to time. When nobody does so any more, the servers delete
// the child, and then the node. All methods are safe for concurrent use. In Java: PersistentTtlNode.
//
// The servers need zookeeper.extendedTypesEnabled=true: else the node is refused, with framework.ErrUnimplemented. They
// look once a minute, so the node may stay for longer than its TTL. Close leaves it to its TTL.
type PersistentTTLNode struct{ *PersistentNode }

const (
	defaultChildName   = "touch"
	defaultTouchFactor = 2

	maxTTL = (1<<40 - 1) * time.Millisecond // the longest that a server can store
)

// WithChildName sets the name of the child that a [PersistentTTLNode] writes again. The default is "touch". In Java:
// the argument childNodeName.
func WithChildName(name string) TTLOption { return ttlOption(func(s *settings) { s.childName = name }) }

// WithTouchFactor sets how often a [PersistentTTLNode] writes its child within the TTL. The default is 2. In Java: the
// argument touchScheduleFactor.
func WithTouchFactor(factor int) TTLOption {
	return ttlOption(func(s *settings) { s.touchFactor = factor })
}

// NewPersistentTTLNode returns a node whose child has the TTL. It does no I/O. Start returns an error if the path or
// the name of the child is invalid, or the TTL or the touch factor is out of range. data nil is an empty node.
// In Java: the constructors of PersistentTtlNode.
func NewPersistentTTLNode(
	client *framework.Client, path string, ttl time.Duration, data []byte, opts ...TTLOption,
) *PersistentTTLNode {
	settings := settingsOf(opts, TTLOption.applyTTL)
	n := &PersistentTTLNode{
		PersistentNode: newPersistentNode(client, "persistent_ttl_node", path, builders.Container, data, settings),
	}
	n.spec.Keep = true
	if n.err == nil {
		n.err = validateTTL(ttl, &n.settings)
	}
	if n.err != nil {
		return n
	}
	s := &n.settings
	child := zkpath.Join(path, s.childName)
	n.also = []desired.Spec{{
		Client: client, Path: child, Mode: builders.PersistentWithTTL, TTL: ttl, ACL: s.acl, Keep: true,
		WithoutParents: s.withoutParents, Touch: ttl / time.Duration(s.touchFactor), Recipe: n.recipe, Name: s.name,
	}}
	return n
}

func validateTTL(ttl time.Duration, s *settings) error {
	if err := validateName("child", s.childName); err != nil {
		return err
	}
	switch short := errtext.TooShort(ttl); {
	case short != "":
		return fmt.Errorf("%w: the TTL %s", framework.ErrBadArguments, short)
	case ttl <= 0 || ttl > maxTTL:
		return fmt.Errorf("%w: a TTL of %v is not between 1 ms and %v", framework.ErrBadArguments, ttl, maxTTL)
	case s.touchFactor < 1 || ttl/time.Duration(s.touchFactor) < time.Millisecond:
		return fmt.Errorf("%w: a touch factor of %d with a TTL of %v", framework.ErrBadArguments, s.touchFactor, ttl)
	}
	return nil
}
