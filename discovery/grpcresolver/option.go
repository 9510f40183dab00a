package grpcresolver

import (
	"time"

	"github.com/gocurator/curator/discovery"
)

// Option configures the connections of [New].
type Option func(*settings)

type settings struct {
	sslPort     bool
	weight      any // func(discovery.ServiceInstance[T]) uint32, or nil
	loadTimeout time.Duration
}

// WithSSLPort connects to the SSL ports of the instances, not to their ports. An instance without one is left out.
func WithSSLPort() Option { return func(s *settings) { s.sslPort = true } }

// WithWeight gives load balancing policies the weights of the instances: see package
// google.golang.org/grpc/experimental/balancer/weight. An instance of weight 0 is left out, and so is one for which
// weight panics: gRPC gets the error. weight is called once for each change of an instance, for each connection; if it
// blocks, that connection keeps its addresses meanwhile. T is the type of the payload of the discovery.
func WithWeight[T any](weight func(discovery.ServiceInstance[T]) uint32) Option {
	return func(s *settings) { s.weight = weight }
}

// WithLoadTimeout sets for how long calls wait for the first answer of ZooKeeper before they fail. The default is 5 s.
func WithLoadTimeout(d time.Duration) Option { return func(s *settings) { s.loadTimeout = d } }

// ServeOption configures [Serve].
type ServeOption func(*serving)

type serving struct {
	pause    time.Duration
	deadline time.Duration
}

// WithPause sets for how long the server goes on to serve while its instance is disabled, so that clients can hear of
// it. The default is 2 s.
func WithPause(d time.Duration) ServeOption { return func(s *serving) { s.pause = d } }

// WithDeadline sets the time from the end of the context of [Serve] to that of all calls. The default is 25 s:
// Kubernetes kills a process after 30. It is longer than the pause. Where ZooKeeper does not answer, half of the rest
// is for that, and half for the calls.
func WithDeadline(d time.Duration) ServeOption { return func(s *serving) { s.deadline = d } }
