package discovery

import (
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
)

// Option configures a [ServiceDiscovery]. A [SerializerOption] is an Option, too.
type Option interface{ apply(*settings) }

type settings struct {
	acl        []zk.ACL
	serializer any // codec.Codec[ServiceInstance[T]], nil for that of NewInstanceSerializer
	json       []SerializerOption
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithSerializer sets what turns instances into the bytes of a node and back. The default is that of
// [NewInstanceSerializer]. What is read has to have the Name and the ID of the instance that was written: nothing else
// fills them in, and Unregister, Update, Drain and NoteError find an instance by them. A node whose decoding panics is
// no instance; one whose decoding blocks holds up the changes of its cache alone. In Java:
// ServiceDiscoveryBuilder.serializer.
func WithSerializer[T any](serializer codec.Codec[ServiceInstance[T]]) Option {
	return option(func(s *settings) { s.serializer = serializer })
}

// WithACL sets the ACL of the nodes of instances. The default is that of the client's ACLProvider. Not in Java.
func WithACL(acl ...zk.ACL) Option {
	acl = slices.Clone(acl)
	return option(func(s *settings) { s.acl = acl })
}

func settingsOf(opts []Option) settings {
	var s settings
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
