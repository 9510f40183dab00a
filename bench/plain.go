package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// plainClient is a plain go-zookeeper client. Its calls take no context.
type plainClient struct {
	conn   *zk.Conn
	closed <-chan zk.Event // when the last goroutine has ended
}

func openPlain(connect string) (client, error) {
	conn, events, err := zk.Connect(strings.Split(connect, ","), sessionTimeout,
		zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return plainClient{conn, events}, nil
}

// silence discards the library's log.
type silence struct{}

func (silence) Printf(string, ...any) {}

func (c plainClient) create(_ context.Context, path string, data []byte) error {
	_, err := c.conn.Create(path, data, 0, zk.WorldACL(zk.PermAll))
	return err
}

func (c plainClient) get(_ context.Context, path string) error {
	_, _, err := c.conn.Get(path)
	return err
}

func (c plainClient) exists(_ context.Context, path string) error {
	_, _, err := c.conn.Exists(path)
	return err
}

func (c plainClient) children(_ context.Context, path string) ([]string, error) {
	children, _, err := c.conn.Children(path)
	return children, err
}

func (c plainClient) deleteAll(_ context.Context, paths []string) error {
	ops := make([]any, len(paths))
	for i, path := range paths {
		ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
	}
	_, err := c.conn.Multi(ops...)
	return err
}

func (c plainClient) removeTree(ctx context.Context, path string) error {
	children, err := c.children(ctx, path)
	if err != nil {
		return err
	}
	for i, child := range children {
		children[i] = path + "/" + child
	}
	return c.deleteAll(ctx, append(children, path))
}

func (c plainClient) createMany(
	ctx context.Context, window int, s *scratch, data []byte, stop *atomic.Bool,
) tally {
	return many(window, stop, func(i int) error { return c.create(ctx, s.series[i].next(), data) })
}

func (c plainClient) getMany(ctx context.Context, window int, path string, stop *atomic.Bool) tally {
	return many(window, stop, func(int) error { return c.get(ctx, path) })
}

// many runs the operation in so many goroutines, each with its number, until stop is set or one fails.
func many(goroutines int, stop *atomic.Bool, operation func(i int) error) tally {
	var wg sync.WaitGroup
	tallies := make([]tally, goroutines)
	for i := range tallies {
		wg.Go(func() {
			var t tally
			for !stop.Load() && t.count(operation(i)) {
			}
			tallies[i] = t
		})
	}
	wg.Wait()
	var all tally
	for _, t := range tallies {
		all.merge(t)
	}
	return all
}

func (c plainClient) lock(path string, l load) (lock, error) {
	if l.Lock != mutex {
		return nil, fmt.Errorf("no lock %q", l.Lock)
	}
	return &plainLock{conn: c.conn, path: path}, nil
}

func (c plainClient) close() error {
	c.conn.Close()
	for range c.closed {
	}
	return nil
}

// plainLock sends the requests of a lock without contention: create, getChildren and delete.
type plainLock struct {
	conn *zk.Conn
	path string
	node string
}

func (l *plainLock) acquire(context.Context) (err error) {
	const flags = zk.FlagEphemeral | zk.FlagSequence
	if l.node, err = l.conn.Create(l.path+"/lock-", nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	children, _, err := l.conn.Children(l.path)
	if err == nil && slices.Min(children) != strings.TrimPrefix(l.node, l.path+"/") {
		return fmt.Errorf("there is contention for %s", l.path)
	}
	return err
}

func (l *plainLock) release(context.Context) error { return l.conn.Delete(l.node, -1) }
