package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// ServiceDiscovery registers instances of services, and finds those that others have registered. An instance is a node
// at basePath/name/id, as in Java. All methods are safe for concurrent use. In Java: ServiceDiscovery.
//
// A registered instance is desired state: it is there from Register to Unregister or Close, with its newest bytes,
// whatever happens to the connection, to the session and to its node. A mere reconnect writes nothing. The instances
// outlive a loss of the session in the process, not on the servers: there they are back with the next session.
type ServiceDiscovery[T any] struct {
	client     *framework.Client
	basePath   string
	serializer codec.Codec[ServiceInstance[T]]
	err        error // returned by Start if not nil
	settings   settings
	reports    waitqueue.Serial // of refused instances, and of nodes that are none

	mu            sync.Mutex
	started       bool
	closed        bool
	registrations map[string]*registration[T]   // by path
	ending        map[*registration[T]]struct{} // unregistered, and perhaps not deleted yet
	given         map[closer]struct{}           // caches and providers that Close ends
}

type closer interface{ Close() error }

// New returns a discovery below basePath, of which, as in Java, a slash at either end does not count. It does no I/O.
// Start returns an error if the path is invalid, or if the default serializer needs the Java class of the payload: see
// [WithPayloadClass]. In Java: ServiceDiscoveryBuilder.
func New[T any](client *framework.Client, basePath string, opts ...Option) *ServiceDiscovery[T] {
	basePath = "/" + trim(basePath)
	d := &ServiceDiscovery[T]{
		client: client, basePath: basePath, settings: settingsOf(opts),
		registrations: make(map[string]*registration[T]), ending: make(map[*registration[T]]struct{}),
		given: make(map[closer]struct{}),
	}
	d.serializer, d.err = serializerOf[T](d.settings)
	if err := zkpath.Validate(basePath, false); err != nil {
		d.err = err
	}
	return d
}

func serializerOf[T any](s settings) (codec.Codec[ServiceInstance[T]], error) {
	if s.serializer == nil {
		return NewInstanceSerializer[T](s.json...)
	}
	serializer, ok := s.serializer.(codec.Codec[ServiceInstance[T]])
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: a %T serializes other instances", framework.ErrBadArguments, s.serializer)
	case len(s.json) > 0:
		return nil, fmt.Errorf("%w: WithSerializer and an option of the default serializer", framework.ErrBadArguments)
	}
	return serializer, nil
}

// Start makes the discovery ready and does no I/O. It fails with [ErrStarted] the second time, with [ErrClosed] after
// Close, with [framework.ErrClosed] if the client is closed, and for the reasons that [New] names. In Java: start,
// which registers thisInstance: call Register.
func (d *ServiceDiscovery[T]) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return errtext.Wrap(d.err, "discovery", "start")
	case d.closed:
		return ErrClosed
	case d.started:
		return ErrStarted
	case hook.Closing(d.client).Err() != nil:
		return errtext.Wrap(framework.ErrClosed, "discovery", "start")
	}
	d.started = true
	return nil
}

// isRunning returns an error unless the discovery is between Start and Close, and its client is started. mu is held.
func (d *ServiceDiscovery[T]) isRunning() error {
	switch {
	case d.closed:
		return ErrClosed
	case !d.started:
		return ErrNotStarted
	case d.client.State() == framework.Latent: // the wait would be for ever
		return framework.ErrNotStarted
	}
	return nil
}

// Close takes the dynamic instances that this discovery has registered out of the service, leaves the static and
// permanent ones, and closes the caches and providers that it gave out. It waits until the nodes are deleted, also
// those that Unregister has left to the background. ctx bounds the wait alone: the deletions go on in the background
// until they succeed or the session has ended. A second Close waits again, and tries at once what the servers have
// refused. In Java: close, which also deletes STATIC and PERMANENT instances and leaves the caches open.
func (d *ServiceDiscovery[T]) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	given := d.given
	d.given = nil
	all := slices.AppendSeq(slices.Collect(maps.Values(d.registrations)), maps.Keys(d.ending))
	d.mu.Unlock()
	for c := range given {
		_ = c.Close() // nil
	}
	for _, r := range all { // first all of them, so that they travel together
		_ = r.node.Remove(ended())
	}
	var failed []error
	for _, r := range all {
		if err := r.node.Remove(ctx); err != nil {
			failed = append(failed, wrap(err, "close", r.path))
		}
	}
	return errors.Join(failed...)
}

// ended returns a context that has ended, for what only begins.
func ended() context.Context {
	root := context.Background() //nolint:forbidigo // it ends here
	ctx, cancel := context.WithCancel(root)
	cancel()
	return ctx
}

// give notes what Close has to close. It fails after Close, and if the client is closed.
func (d *ServiceDiscovery[T]) give(c closer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.isRunning(); err != nil {
		return err
	}
	if hook.Closing(d.client).Err() != nil {
		return errtext.Wrap(framework.ErrClosed, "discovery", "start")
	}
	d.given[c] = struct{}{}
	return nil
}

// takeBack forgets what has been closed.
func (d *ServiceDiscovery[T]) takeBack(c closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.given, c)
}

// servicePath returns the path of a service.
func (d *ServiceDiscovery[T]) servicePath(name string) string { return zkpath.Join(d.basePath, name) }

// validateName returns an error if name cannot be the name of a service. As in Java, it may be a path of several nodes,
// and a slash at either end does not count.
func validateName(name string) error {
	if trim(name) == "" || zkpath.Validate("/"+trim(name), false) != nil {
		return fmt.Errorf("%w: %q is no name of a service", zk.ErrInvalidPath, name)
	}
	return nil
}

// validateID returns an error if id cannot be the name of a node. A slash at either end does not count.
func validateID(id string) error {
	if trim(id) == "" || strings.Contains(trim(id), "/") || zkpath.Validate("/"+trim(id), false) != nil {
		return fmt.Errorf("%w: the id %q is no name of a node", zk.ErrInvalidPath, id)
	}
	return nil
}

// trim returns a name without a slash at either end, as [zkpath.Join] takes it.
func trim(name string) string { return strings.TrimSuffix(strings.TrimPrefix(name, "/"), "/") }

// wrap adds the action of the discovery to err. It returns nil if err is nil.
func wrap(err error, what, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrClosed):
		return ErrClosed
	}
	return errtext.Wrap(err, "discovery", "%s %s", what, path)
}
