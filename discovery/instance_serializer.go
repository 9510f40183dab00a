package discovery

import "github.com/gocurator/curator/codec"

// InstanceSerializer turns instances into the bytes of their nodes and back. In Java: InstanceSerializer.
type InstanceSerializer[T any] = codec.Codec[ServiceInstance[T]]
