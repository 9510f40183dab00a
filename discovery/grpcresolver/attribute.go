package grpcresolver

import (
	"google.golang.org/grpc/attributes"

	"github.com/gocurator/curator/discovery"
)

// InstanceOf returns the instance of an endpoint, for a load balancing policy: its id, its payload. The attributes are
// those of a resolver.Endpoint, or the BalancerAttributes of a resolver.Address for a policy that does not know
// endpoints. T is the type of the payload of the discovery; ok is false for another one, and for an endpoint of another
// resolver. The weight is that of weight.FromEndpoint: see [WithWeight].
func InstanceOf[T any](attributes *attributes.Attributes) (instance discovery.ServiceInstance[T], ok bool) {
	a, ok := attributes.Value(instanceKey{}).(attribute[T])
	return a.instance, ok
}

type instanceKey struct{}

// String is for the log of gRPC.
func (instanceKey) String() string { return "instance" }

// attribute is an instance as gRPC compares it.
type attribute[T any] struct{ instance discovery.ServiceInstance[T] }

func (a attribute[T]) Equal(other any) bool {
	o, ok := other.(attribute[T])
	return ok && a.instance.Equal(o.instance)
}

// String is for the log of gRPC.
func (a attribute[T]) String() string { return a.instance.ID }
