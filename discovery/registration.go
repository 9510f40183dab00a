package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/zkpath"
)

// registration is an instance that this process wants to be there.
type registration[T any] struct {
	d    *ServiceDiscovery[T]
	path string // without the number of a sequential node
	node *desired.Node

	instance ServiceInstance[T] // the newest; d.mu guards it
}

// Register registers an instance and waits until others can see it. If it fails because ctx ends or the servers refuse
// the node, the instance is still registered as soon as possible, until [ServiceDiscovery.Unregister]. An instance
// with the name and the id of one that is registered here replaces it. The error of ctx is joined with the reason: why
// there is no connection in an outage, for example. An instance with which the server ends each connection is
// [framework.ErrRequestTooLarge].
//
// A node of another session with this name and id stays, and Register waits until it goes: the error of ctx is joined
// with [ErrForeign] then. After a process with a fixed id has died, that is at most a session timeout; a random id
// never waits. In Java: registerService.
func (d *ServiceDiscovery[T]) Register(ctx context.Context, instance ServiceInstance[T]) error {
	r, change, err := d.want(instance, "register")
	if err != nil {
		return err
	}
	return r.wrap(r.node.AwaitOurs(ctx, change), "register")
}

// Update changes an instance that this discovery has registered and waits until others can see it. If it fails, the
// instance still changes as soon as possible; the errors are those of Register. An instance that is not registered here
// is [ErrNotRegistered], and one cannot change its type. In Java: updateService.
func (d *ServiceDiscovery[T]) Update(ctx context.Context, instance ServiceInstance[T]) error {
	r, change, err := d.want(instance, "update")
	if err != nil {
		return err
	}
	return r.wrap(r.node.AwaitWritten(ctx, change), "update")
}

// want makes an instance desired, or changes the one that is. what is the action: to register, or to update what there
// is.
func (d *ServiceDiscovery[T]) want(instance ServiceInstance[T], what string) (*registration[T], int, error) {
	path := zkpath.Join(d.servicePath(instance.Name), instance.ID)
	data, err := d.encode(instance)
	if err != nil {
		return nil, 0, wrap(err, what, path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.isRunning(); err != nil {
		return nil, 0, err
	}
	r := d.registrations[path]
	switch {
	case r == nil && what == "update":
		return nil, 0, fmt.Errorf("%w: %s", ErrNotRegistered, path)
	case r != nil && r.instance.Type != instance.Type:
		return nil, 0, wrap(fmt.Errorf("%w: the type changes from %v to %v",
			framework.ErrBadArguments, r.instance.Type, instance.Type), what, path)
	case r != nil:
		r.instance = instance
		return r, r.node.Set(data), nil
	}
	r = &registration[T]{d: d, path: path, instance: instance}
	r.node, err = desired.Of(d.client).Add(desired.Spec{
		Client: d.client, Path: path, Mode: modeOf(instance.Type), Data: data, ACL: d.settings.acl,
		Keep: !instance.Type.IsDynamic(), Recipe: "service_discovery", Name: instance.Name,
	}, r.notify)
	if err != nil {
		return nil, 0, wrap(err, what, path)
	}
	d.registrations[path] = r
	return r, 1, nil
}

// Unregister takes an instance out of its service. An instance that is not there is no error.
//
// Of one that is registered here, it waits until the node is deleted; ctx bounds the wait alone: the deletion goes on
// in the background. A node of another session that it waits for stays. Of an instance of another process, it deletes
// the node, and ctx bounds the requests; a Go process that still wants the instance puts it there again. In Java:
// unregisterService, which does nothing for an instance of another process.
func (d *ServiceDiscovery[T]) Unregister(ctx context.Context, instance ServiceInstance[T]) error {
	path := zkpath.Join(d.servicePath(instance.Name), instance.ID)
	d.mu.Lock()
	if err := d.isRunning(); err != nil {
		d.mu.Unlock()
		return err
	}
	r := d.registrations[path]
	delete(d.registrations, path)
	if r != nil {
		d.ending[r] = struct{}{}
		_ = r.node.Delete(ended()) // before a Close, which leaves a static instance
	}
	d.mu.Unlock()
	if r != nil {
		err := wrap(r.node.Remove(ctx), "unregister", path)
		d.forgetEnded(r)
		return err
	}
	found, err := d.find(ctx, instance.Name, instance.ID)
	if err == nil {
		err = d.client.Delete().Guaranteed().ForPath(ctx, found)
	}
	if errors.Is(err, zk.ErrNoNode) && !errors.Is(err, framework.ErrNoChroot) {
		return nil
	}
	return wrap(err, "unregister", path)
}

// Drain disables an instance that this discovery has registered, so that nobody picks it any more, waits for a pause in
// which the last callers end, and unregisters it. ctx ends the pause: the instance is unregistered all the same, which
// goes on in the background. The name and the id of instance count, not its data. Java leaves disabled instances out,
// too. Not in Java.
func (d *ServiceDiscovery[T]) Drain(ctx context.Context, instance ServiceInstance[T], pause time.Duration) error {
	d.mu.Lock()
	r := d.registrations[zkpath.Join(d.servicePath(instance.Name), instance.ID)]
	if r != nil {
		instance = r.instance
	}
	d.mu.Unlock()
	instance.Disabled = true
	err := d.Update(ctx, instance)
	if errors.Is(err, ErrNotRegistered) || errors.Is(err, framework.ErrNotStarted) || errors.Is(err, framework.ErrClosed) {
		return err
	}
	if err == nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, d.Unregister(ctx, instance))
}

// forgetEnded forgets r and some of the others, if they are deleted. In a long outage there may be many that are not:
// each call looks at more of them than it adds, and at no more than a few. The order of a map is random.
func (d *ServiceDiscovery[T]) forgetEnded(r *registration[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	looks := 8
	for other := range d.ending {
		if other.isGone() {
			delete(d.ending, other)
		}
		if looks--; looks == 0 {
			break
		}
	}
	if r.isGone() {
		delete(d.ending, r)
	}
}

// isGone reports whether the node is deleted.
func (r *registration[T]) isGone() bool {
	select {
	case <-r.node.Gone():
		return true
	default:
		return false
	}
}

// wrap adds the action of the discovery to err. An instance that is unregistered meanwhile is not registered.
func (r *registration[T]) wrap(err error, what string) error {
	if errors.Is(err, framework.ErrClosed) {
		r.d.mu.Lock()
		defer r.d.mu.Unlock()
		if r.d.registrations[r.path] != r {
			return fmt.Errorf("%w: %s", ErrNotRegistered, r.path)
		}
	}
	return wrap(err, what, r.path)
}

// notify reports why the node cannot be there. It does not block.
func (r *registration[T]) notify(ev desired.Event) {
	if ev.Type != desired.Refused {
		return
	}
	r.d.reportError("ServiceDiscovery", errtext.Wrap(ev.Err, "discovery", "register %s", r.path))
}

// reportError reports an error that has no caller. It does not block.
func (d *ServiceDiscovery[T]) reportError(recipe string, err error) {
	d.reports.Do(func() {
		root := context.Background() //nolint:forbidigo // a report has no caller
		d.client.ReportUnhandled(root, recipe, err)
	})
}

// encode returns the bytes of an instance.
func (d *ServiceDiscovery[T]) encode(instance ServiceInstance[T]) (data []byte, err error) {
	if err := validateName(instance.Name); err != nil {
		return nil, err
	}
	if err := validateID(instance.ID); err != nil {
		return nil, err
	}
	defer usercode.Catch("the serializer", &err)
	return d.serializer.Encode(instance)
}

func modeOf(t ServiceType) builders.CreateMode {
	switch t {
	case DynamicSequential:
		return builders.EphemeralSequential
	case Static, Permanent:
		return builders.Persistent
	}
	return builders.Ephemeral
}
