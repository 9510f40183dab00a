package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

const (
	sessionTimeout    = 10 * time.Second
	connectionTimeout = 15 * time.Second
)

// curatorClient is a client of this module.
type curatorClient struct {
	*framework.Client
	after func() error // called after the client is closed; may be nil
}

func openCurator(connect string) (client, error) {
	return asClient(startCurator(connect, stubborn))
}

func openImpatientCurator(connect string) (client, error) {
	return asClient(startCurator(connect, impatient))
}

// startCurator starts a client with the settings of the Java side.
func startCurator(connect string, policy retry.Policy, opts ...framework.Option) (c curatorClient, err error) {
	c.Client, err = framework.New(connect, append([]framework.Option{
		framework.WithSessionTimeout(sessionTimeout),
		framework.WithConnectionTimeout(connectionTimeout),
		framework.WithoutEnsembleTracker(),
		framework.WithRetryPolicy(policy),
	}, opts...)...)
	if err != nil {
		return c, err
	}
	return c, c.Start()
}

// asClient returns a nil client for an error.
func asClient(c curatorClient, err error) (client, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c curatorClient) create(ctx context.Context, path string, data []byte) error {
	_, err := c.Create().ForPath(ctx, path, data)
	return err
}

func (c curatorClient) get(ctx context.Context, path string) error {
	_, err := c.GetData().ForPath(ctx, path)
	return err
}

func (c curatorClient) exists(ctx context.Context, path string) error {
	_, err := c.CheckExists().ForPath(ctx, path)
	return err
}

func (c curatorClient) children(ctx context.Context, path string) ([]string, error) {
	return c.GetChildren().ForPath(ctx, path)
}

func (c curatorClient) deleteAll(ctx context.Context, paths []string) error {
	ops := make([]builders.TransactionOperation, len(paths))
	for i, path := range paths {
		ops[i] = c.TransactionOp().Delete().ForPath(path)
	}
	_, err := c.Transaction().ForOperations(ctx, ops...)
	return err
}

func (c curatorClient) removeTree(ctx context.Context, path string) error {
	return c.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(ctx, path)
}

// unending is the context of operations in the background. One that can end costs each of them an allocation, and so
// does a lookup in one of context.WithoutCancel.
var unending = context.Background()

func (c curatorClient) createMany(
	_ context.Context, window int, s *scratch, data []byte, stop *atomic.Bool,
) tally {
	w := newFlight(window)
	create := c.Create().InBackground(w.landed)
	return w.keep(stop, func() error { return create.ForPath(unending, s.series[0].next(), data) })
}

func (c curatorClient) getMany(_ context.Context, window int, path string, stop *atomic.Bool) tally {
	w := newFlight(window)
	get := c.GetData().InBackground(w.landed)
	return w.keep(stop, func() error { return get.ForPath(unending, path) })
}

func (c curatorClient) lock(path string, l load) (lock, error) {
	switch l.Lock {
	case mutex:
		return &curatorLock{lock: locks.NewInterProcessMutex(c.Client, path)}, nil
	case readLock:
		return &curatorLock{lock: locks.NewInterProcessReadWriteLock(c.Client, path).ReadLock()}, nil
	case writeLock:
		return &curatorLock{lock: locks.NewInterProcessReadWriteLock(c.Client, path).WriteLock()}, nil
	case semaphore:
		return &curatorSemaphore{semaphore: locks.NewInterProcessSemaphoreV2(c.Client, path, l.Leases)}, nil
	}
	return nil, fmt.Errorf("no lock %q", l.Lock)
}

func (c curatorClient) close() error {
	err := c.Close()
	if c.after != nil {
		err = errors.Join(err, c.after())
	}
	return err
}

// flight runs background operations, at most as many at a time as it has seats.
type flight struct {
	seats chan struct{}
	tally tally // of the dispatcher until all operations have ended
}

func newFlight(window int) *flight { return &flight{seats: make(chan struct{}, window)} }

// landed is the callback of all operations.
func (f *flight) landed(_ context.Context, ev callbacks.Event) {
	f.tally.count(ev.Err)
	<-f.seats
}

// keep submits operations until stop is set, and waits for the last of them.
func (f *flight) keep(stop *atomic.Bool, submit func() error) tally {
	var refused error
	for refused == nil && !stop.Load() {
		f.seats <- struct{}{}
		if refused = submit(); refused != nil {
			<-f.seats
		}
	}
	for range cap(f.seats) {
		f.seats <- struct{}{}
	}
	if refused != nil {
		f.tally.fail(refused)
	}
	return f.tally
}
