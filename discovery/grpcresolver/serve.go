package grpcresolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
)

// Serve serves on lis and keeps the instance registered until ctx ends: an instance is there for as long as its server
// listens. An instance without any port has that of lis, and one without an address the IP address of lis, if lis has
// one. Without a connection to ZooKeeper the server serves, and is registered as soon as there is one.
//
// When ctx ends, the server drains: the instance is disabled, for a pause in which clients hear of it and the server
// still serves; it is unregistered; then the server stops gracefully. At the deadline calls that are still under way
// end. See [WithPause] and [WithDeadline]. Cancel ctx on SIGTERM, with signal.NotifyContext, and close the discovery
// when Serve has returned.
//
// Serve returns nil if all calls have ended by themselves and the instance is gone. It returns an error if the instance
// is refused or the server cannot serve, and one that matches context.DeadlineExceeded if calls were ended or ZooKeeper
// does not answer: then the instance is unregistered in the background, and ends with the session at the latest. If
// somebody else stops the server, the instance is unregistered, too. Serve closes lis and stops the server in any case.
func Serve[T any](
	ctx context.Context, server *grpc.Server, lis net.Listener,
	d *discovery.ServiceDiscovery[T], instance discovery.ServiceInstance[T], opts ...ServeOption,
) error {
	s := serving{pause: 2 * time.Second, deadline: 25 * time.Second}
	for _, o := range opts {
		o(&s)
	}
	instance, err := complete(instance, lis)
	if err == nil && (s.pause < 0 || s.pause >= s.deadline) {
		err = fmt.Errorf("%w: a pause of %v and a deadline of %v", framework.ErrBadArguments, s.pause, s.deadline)
	}
	if err != nil {
		server.Stop()
		return wrap(errors.Join(err, lis.Close()), instance)
	}

	running, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() {
		defer end()
		err := server.Serve(lis)
		if errors.Is(err, grpc.ErrServerStopped) { // before it began
			err = nil
		}
		served <- err
	}()
	registerErr := d.Register(running, instance)
	isRegistered := registerErr == nil
	if isRegistered {
		<-running.Done()
	} else if running.Err() != nil {
		registerErr = nil // it has not been refused
	}

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.deadline)
	defer cancel()
	var leaveErr error
	leaving, cancel := context.WithTimeout(bounded, s.pause+(s.deadline-s.pause)/2)
	defer cancel()
	if isRegistered && ctx.Err() != nil {
		leaveErr = d.Drain(leaving, instance, s.pause)
	} else { // there is nothing to drain
		leaveErr = d.Unregister(leaving, instance)
	}
	stopErr := stop(bounded, server)
	return wrap(errors.Join(registerErr, leaveErr, stopErr, <-served), instance)
}

// stop stops the server gracefully until ctx ends.
func stop(ctx context.Context, server *grpc.Server) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.GracefulStop()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		server.Stop()
		<-stopped
		return fmt.Errorf("calls were ended: %w", ctx.Err())
	}
}

// complete returns the instance with the port and the address of the listener if it has none.
func complete[T any](instance discovery.ServiceInstance[T], lis net.Listener) (discovery.ServiceInstance[T], error) {
	at, _ := lis.Addr().(*net.TCPAddr)
	if instance.Port == 0 && instance.SSLPort == 0 && at != nil {
		instance.Port = at.Port
	}
	if instance.Address == "" && at != nil && !at.IP.IsUnspecified() {
		instance.Address = at.IP.String()
	}
	switch {
	case instance.Address == "":
		return instance, fmt.Errorf("%w: the instance has no address, and the listener is at %v: see "+
			"discovery.LocalAddresses", framework.ErrBadArguments, lis.Addr())
	case instance.Port == 0 && instance.SSLPort == 0:
		return instance, fmt.Errorf("%w: the instance has no port, and the listener is at %v", framework.ErrBadArguments,
			lis.Addr())
	}
	return instance, nil
}

func wrap[T any](err error, instance discovery.ServiceInstance[T]) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("grpcresolver: serve %s/%s: %w", instance.Name, instance.ID, err)
}
