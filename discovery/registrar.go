package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// RegisterOnce writes the node of a static or permanent instance once. Unlike Register, it keeps nothing in this
// process: the node stays until somebody deletes it, and nobody puts it back. It is for registrars, which register the
// instances of others: any process may unregister such an instance with [ServiceDiscovery.Unregister], or replace it
// with RegisterOnce.
//
// ctx bounds the requests. With [framework.ErrUncertain] or a lost connection, the instance may be registered: the call
// can be made again. A node of a session, as that of a dynamic instance, stays, and so does one that has children:
// [ErrForeign]. An instance that this discovery keeps with Register is [ErrInUse]; a dynamic type is
// [framework.ErrBadArguments]. Not in Java.
func (d *ServiceDiscovery[T]) RegisterOnce(ctx context.Context, instance ServiceInstance[T]) error {
	path := zkpath.Join(d.servicePath(instance.Name), instance.ID)
	return wrap(d.writeOnce(ctx, path, instance), "register", path)
}

func (d *ServiceDiscovery[T]) writeOnce(ctx context.Context, path string, instance ServiceInstance[T]) error {
	data, err := d.encode(instance)
	switch {
	case err != nil:
		return err
	case instance.Type.IsDynamic():
		return fmt.Errorf("%w: the type is %v", framework.ErrBadArguments, instance.Type)
	}
	isKept, err := d.keeps(instance)
	switch {
	case err != nil:
		return err
	case isKept:
		return ErrInUse
	}
	create := d.client.Create().CreatingParentContainersIfNeeded().WithMode(builders.Persistent)
	if len(d.settings.acl) > 0 {
		create = create.WithACL(d.settings.acl...)
	}
	for { // as long as others delete and write the node in between
		if _, err := create.ForPath(ctx, path, data); !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		stat, err := d.client.CheckExists().ForPath(ctx, path)
		switch {
		case err != nil:
			return err
		case stat == nil:
			continue
		case stat.EphemeralOwner != 0, stat.NumChildren > 0: // of a session, or of a service
			return ErrForeign
		}
		stat, err = d.client.SetData().Idempotent().WithVersion(stat.Version).ForPath(ctx, path, data)
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			continue
		case err == nil && stat.EphemeralOwner != 0: // a new node with the same version, whose owner puts its data back
			return ErrForeign
		}
		return err
	}
}

// keeps reports whether an instance is registered here. It fails unless the discovery is between Start and Close.
func (d *ServiceDiscovery[T]) keeps(instance ServiceInstance[T]) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.registrations[zkpath.Join(d.servicePath(instance.Name), instance.ID)] != nil, d.isRunning()
}

// Purge deletes the instances of type [Static] whose registration time is more than age ago by the clock of this
// process, and returns how many it has deleted. Whoever has registered them does not matter, except for those that
// this discovery keeps with Register; a Go process that keeps one puts it back. Permanent instances stay.
//
// An instance that is written meanwhile stays. One that is deleted and registered anew may go, if that happens between
// the look at it and its deletion: ZooKeeper cannot tell two nodes with one path and one version apart. It is there
// again when it is registered the next time. Several processes that purge at once make that more likely: let one do
// it, such as the one with a leadership.
//
// ctx bounds the requests. A service or an instance that this client may not read or delete holds up no other: the
// error joins all of these. In Java: InstanceCleanup of the discovery server, which only deletes what it has registered
// itself, and leaves the services whose name is a path.
func (d *ServiceDiscovery[T]) Purge(ctx context.Context, age time.Duration) (purged int, err error) {
	names, err := d.Names(ctx)
	if err != nil {
		return 0, err
	}
	before := time.Now().Add(-age)
	var refused []error
	for ; len(names) > 0; names = names[1:] {
		entries, inner, err := d.list(ctx, names[0])
		if errors.Is(err, zk.ErrNoAuth) {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return purged, errors.Join(append(refused, err)...)
		}
		for _, node := range inner { // the name of a service may be a path
			names = append(names, names[0]+"/"+node)
		}
		for _, e := range entries {
			err := e.Err
			if err == nil && isPurged(e.Instance, before) {
				var deleted bool
				if deleted, err = d.purge(ctx, e.Path, before); deleted {
					purged++
				}
			}
			switch {
			case errors.Is(err, zk.ErrNoAuth):
				refused = append(refused, err)
			case err != nil && e.Err == nil: // else it is no instance
				return purged, errors.Join(append(refused, err)...)
			}
		}
	}
	return purged, errors.Join(refused...)
}

func isPurged[T any](instance ServiceInstance[T], before time.Time) bool {
	return instance.Type == Static && instance.RegistrationTime.Before(before)
}

// purge deletes a node if it still is an instance to be purged. It reads the node again, so that only a moment passes
// in which the node can become another one with the same version.
func (d *ServiceDiscovery[T]) purge(ctx context.Context, path string, before time.Time) (deleted bool, err error) {
	var stat zk.Stat
	data, err := d.read().StoringStatIn(&stat).ForPath(ctx, path)
	if err == nil {
		instance, decodeErr := d.decode(path, data)
		if decodeErr != nil || !isPurged(instance, before) {
			return false, nil
		}
		if isKept, err := d.keeps(instance); isKept || err != nil {
			return false, err
		}
		err = d.client.Delete().WithVersion(stat.Version).ForPath(ctx, path)
	}
	for _, moved := range []error{zk.ErrNoNode, zk.ErrBadVersion, zk.ErrNotEmpty} {
		if errors.Is(err, moved) {
			return false, nil
		}
	}
	return err == nil, wrap(err, "purge", path)
}
