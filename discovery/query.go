package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// Entry is a node of a service: an instance, or an error for bytes that are none.
type Entry[T any] struct {
	Path     string
	Instance ServiceInstance[T] // not meaningful if Err is not nil
	Err      error
}

// Names returns the names of the services, sorted. ctx bounds the request. It is empty if the base path does not
// exist. A chroot that does not exist is [framework.ErrNoChroot], for all calls that read. Of a name that is a path, it
// has the first node, as in Java. In Java: queryForNames, which throws without a base path.
func (d *ServiceDiscovery[T]) Names(ctx context.Context) ([]string, error) {
	names, err := d.children(ctx, d.basePath)
	return names, wrap(err, "names", d.basePath)
}

// Instances returns the instances of a service as the servers have them, disabled ones too, sorted by the names of
// their nodes. Nodes that are no instances are left out: see [ServiceDiscovery.Entries]. ctx bounds the requests: one
// for the list, and one for each instance, all at once. A program that asks often has a [ServiceCache]. In Java:
// queryForInstances, which throws if one cannot be read.
func (d *ServiceDiscovery[T]) Instances(ctx context.Context, name string) ([]ServiceInstance[T], error) {
	entries, err := d.Entries(ctx, name)
	if err != nil {
		return nil, err
	}
	instances := make([]ServiceInstance[T], 0, len(entries))
	for _, e := range entries {
		if e.Err == nil {
			instances = append(instances, e.Instance)
		}
	}
	return instances, nil
}

// Entries returns all nodes of a service, as [ServiceDiscovery.Instances] does. A node that is no instance, or that
// this client may not read, is an entry with an error. Not in Java.
func (d *ServiceDiscovery[T]) Entries(ctx context.Context, name string) ([]Entry[T], error) {
	entries, _, err := d.list(ctx, name)
	return entries, err
}

// list is Entries, and also returns the names of those nodes that have children.
func (d *ServiceDiscovery[T]) list(ctx context.Context, name string) (entries []Entry[T], inner []string, err error) {
	path := d.servicePath(name)
	if err := validateName(name); err != nil {
		return nil, nil, wrap(err, "instances", path)
	}
	nodes, err := d.children(ctx, path)
	if err != nil {
		return nil, nil, wrap(err, "instances", path)
	}
	reads, stats := make([]builders.Future[[]byte], len(nodes)), make([]zk.Stat, len(nodes))
	for i, node := range nodes {
		reads[i] = d.read().StoringStatIn(&stats[i]).Submit(ctx, zkpath.Join(path, node))
	}
	entries = make([]Entry[T], 0, len(nodes))
	for i, node := range nodes {
		e := Entry[T]{Path: zkpath.Join(path, node)}
		data, err := reads[i].Wait(ctx)
		switch {
		case errors.Is(err, zk.ErrNoNode): // it has gone behind the list
			continue
		case err == nil:
			e.Instance, e.Err = d.decode(e.Path, data)
		case errors.Is(err, zk.ErrNoAuth):
			e.Err = wrap(err, "read", e.Path)
		default:
			return nil, nil, wrap(err, "instances", path)
		}
		entries = append(entries, e)
		if err == nil && stats[i].NumChildren > 0 {
			inner = append(inner, node)
		}
	}
	return entries, inner, nil
}

// Instance returns an instance as the servers have it, or [ErrNoInstance]. ctx bounds the requests. In Java:
// queryForInstance, which returns null, also for DYNAMIC_SEQUENTIAL instances.
func (d *ServiceDiscovery[T]) Instance(ctx context.Context, name, id string) (ServiceInstance[T], error) {
	var none ServiceInstance[T]
	path, err := d.find(ctx, name, id)
	if err == nil {
		var data []byte
		if data, err = d.read().ForPath(ctx, path); err == nil {
			return d.decode(path, data)
		}
	}
	path = zkpath.Join(d.servicePath(name), id)
	if errors.Is(err, zk.ErrNoNode) && !errors.Is(err, framework.ErrNoChroot) {
		return none, errtext.Wrap(ErrNoInstance, "discovery", "%s", path)
	}
	return none, wrap(err, "instance", path)
}

// read reads the bytes that decode takes. Those that do not decompress are an error of their instance alone.
func (d *ServiceDiscovery[T]) read() builders.GetData { return d.client.GetData().Undecompressed() }

// find returns the path of an instance. The name of a sequential node has a number behind the id.
func (d *ServiceDiscovery[T]) find(ctx context.Context, name, id string) (string, error) {
	if err := validateName(name); err != nil {
		return "", err
	}
	if err := validateID(id); err != nil {
		return "", err
	}
	nodes, err := d.children(ctx, d.servicePath(name))
	if err != nil {
		return "", err
	}
	base := trim(id)
	if slices.Contains(nodes, base) {
		return zkpath.Join(d.servicePath(name), base), nil
	}
	missing := zk.ErrNoNode
	for _, node := range nodes {
		number, ok := strings.CutPrefix(node, base)
		if !ok || !isNumber(number) {
			continue
		}
		path := zkpath.Join(d.servicePath(name), node)
		data, err := d.read().ForPath(ctx, path)
		switch {
		case errors.Is(err, zk.ErrNoNode): // it has gone behind the list
		case errors.Is(err, zk.ErrNoAuth):
			missing = err // it may be the one
		case err != nil:
			return "", err
		default:
			if instance, err := d.decode(path, data); err == nil && instance.ID == id {
				return path, nil
			}
		}
	}
	return "", missing
}

// isNumber reports whether s is the number that ZooKeeper puts behind the name of a sequential node.
func isNumber(s string) bool {
	return len(s) >= 10 && strings.Trim(s[1:], "0123456789") == "" && strings.ContainsAny(s[:1], "-0123456789")
}

// children returns the names of the children of a node, sorted, and none if it does not exist. A missing chroot is an
// error.
func (d *ServiceDiscovery[T]) children(ctx context.Context, path string) ([]string, error) {
	d.mu.Lock()
	err := d.isRunning()
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	names, err := d.client.GetChildren().ForPath(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, d.chrootError(ctx)
	}
	slices.Sort(names)
	return names, err
}

// chrootError returns the error of a chroot that does not exist, which is why no other node does, or nil.
func (d *ServiceDiscovery[T]) chrootError(ctx context.Context) error {
	if err := waitqueue.CheckChroot(ctx, d.client); errors.Is(err, framework.ErrNoChroot) {
		return err
	}
	return nil
}

// decode returns the instance of a node from its bytes, which are compressed if the client compresses.
func (d *ServiceDiscovery[T]) decode(path string, data []byte) (instance ServiceInstance[T], err error) {
	if data, err = hook.Decompress(d.client, path, data, false); err == nil {
		instance, err = decodeWith(d.serializer, data)
	}
	if err != nil {
		err = errtext.Wrap(err, "discovery", "decode %s", path)
	}
	return instance, err
}

func decodeWith[V any](c interface{ Decode([]byte) (V, error) }, data []byte) (value V, err error) {
	defer usercode.Catch("the serializer", &err)
	return c.Decode(data)
}
