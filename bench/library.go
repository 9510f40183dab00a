package main

import (
	"context"
	"fmt"
	"sync/atomic"
)

// The names of the contenders.
const (
	curator = "curator"
	plain   = "go-zookeeper"
	javas   = "Java Curator"
)

// library is a ZooKeeper client library of Go.
type library struct {
	base string // the node that everything is created under
	// open opens a client, and does not wait until it is connected.
	open func(connect string) (client, error)
	// impatient is open for a client that retries nothing.
	impatient func(connect string) (client, error)
}

// client is one client of a library.
type client interface {
	create(ctx context.Context, path string, data []byte) error
	get(ctx context.Context, path string) error
	exists(ctx context.Context, path string) error
	children(ctx context.Context, path string) ([]string, error)
	deleteAll(ctx context.Context, paths []string) error
	// removeTree deletes a node and its tree, while others may still delete nodes of it.
	removeTree(ctx context.Context, path string) error

	// createMany and getMany keep a window of operations in flight until stop is set: asynchronously, or with as many
	// goroutines if the library has no asynchronous calls. They return when nothing is in flight.
	createMany(ctx context.Context, window int, s *scratch, data []byte, stop *atomic.Bool) tally
	getMany(ctx context.Context, window int, path string, stop *atomic.Bool) tally

	// lock returns one contender for the lock of a path. The load has the kind of the lock.
	lock(path string, l load) (lock, error)

	close() error
}

// lock is one contender for a lock.
type lock interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
}

// libraries has the libraries of Go by their names.
var libraries = map[string]library{
	curator: {base: "/bench-curator", open: openCurator, impatient: openImpatientCurator},
	telemetryOff: {
		base: "/bench-telemetry-off", open: openWithoutTelemetry(stubborn), impatient: openWithoutTelemetry(impatient),
	},
	sampledTenth: {base: "/bench-sampled-tenth", open: openWithSDK(stubborn, 0.1), impatient: openWithSDK(impatient, 0.1)},
	sampledAll:   {base: "/bench-sampled-all", open: openWithSDK(stubborn, 1), impatient: openWithSDK(impatient, 1)},
	handTenth:    {base: "/bench-hand-tenth", open: openByHand(stubborn, 0.1), impatient: openByHand(impatient, 0.1)},
	handAll:      {base: "/bench-hand-all", open: openByHand(stubborn, 1), impatient: openByHand(impatient, 1)},
	plain:        {base: "/bench-plain", open: openPlain, impatient: openPlain},
	limit:        {base: "/bench-limit", open: openLimit, impatient: openLimit},
}

func libraryNamed(name string) (library, error) {
	l, ok := libraries[name]
	if !ok {
		return l, fmt.Errorf("no library %q", name)
	}
	return l, nil
}
