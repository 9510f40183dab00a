package curatortest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// RefuseConnects refuses new connections until restore. Open ones stay. restore returns when the port is open again; it
// waits if another process has taken the port.
func (f *Faults) RefuseConnects() (restore func()) {
	f.refuse(1)
	return sync.OnceFunc(func() { f.refuse(-1) })
}

func (f *Faults) refuse(more int) {
	f.listening.Lock()
	defer f.listening.Unlock()
	f.mu.Lock()
	f.refusals += more
	f.mu.Unlock()
	f.settle(f.ctx) //nolint:errcheck // it fails only after close
}

// listen accepts connections at addr, host and port. Port 0 is a free port.
func (f *Faults) listen(addr string) error {
	f.listening.Lock()
	defer f.listening.Unlock()
	l, held, err := listenOn(addr)
	if err != nil {
		return err
	}
	f.held = held
	f.mu.Lock()
	f.address = l.Addr().String()
	f.mu.Unlock()
	f.serve(l)
	return nil
}

// addr returns the address of the network connections, whether they are accepted now or not.
func (f *Faults) addr() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.address
}

// stopListening refuses new connections, in memory too, and ends those that are open.
func (f *Faults) stopListening() {
	f.setStopped(true) // first: another call may hold listening, and wait for the port
	f.listening.Lock()
	defer f.listening.Unlock()
	f.settle(f.ctx) //nolint:errcheck // closing the listener is all it does
	f.CutAll()
}

// listenLimit bounds the wait for the own port.
const listenLimit = 10 * time.Second

// listenAgain ends stopListening: connections are accepted at the same address. It waits for the port if another
// process has taken it, but not for long.
func (f *Faults) listenAgain() error {
	f.listening.Lock()
	defer f.listening.Unlock()
	f.setStopped(false)
	ctx, cancel := context.WithTimeout(f.ctx, listenLimit)
	defer cancel()
	err := f.settle(ctx)
	if err != nil {
		f.setStopped(true)
	}
	return err
}

func (f *Faults) setStopped(stopped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = stopped
}

// connect connects a client in memory and returns its end. Like a dial of the network, it does not wait for the server.
func (f *Faults) connect(ctx context.Context) (net.Conn, error) {
	err := ctx.Err()
	if err == nil {
		client, server := newPipe()
		if f.accept(server, nil) {
			return client, nil
		}
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return nil, &net.OpError{Op: "dial", Net: pipeNetwork, Addr: pipeAddr{}, Err: err}
}

// settle opens or closes the listener, as connections are accepted or refused. The caller holds listening.
func (f *Faults) settle(ctx context.Context) error {
	f.mu.Lock()
	addr, open, closed := f.address, f.open(), f.closed
	f.mu.Unlock()
	switch {
	case closed:
		return net.ErrClosed
	case !open:
		f.closeListener() //nolint:errcheck // it is closed in any case
		return nil
	case addr == "" || f.listener != nil:
		return nil
	}
	t := time.NewTicker(listenPause)
	defer t.Stop()
	for {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			f.serve(l)
			return nil
		}
		select { // the system may have given the port to a connection of another process
		case <-t.C:
			if !f.accepting() {
				return err // the faults have ended
			}
		case <-ctx.Done():
			return err
		}
	}
}

func (f *Faults) accepting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// listenPause is the pause between two attempts to get the port back.
const listenPause = 5 * time.Millisecond

// closeListener stops listening. The caller holds listening.
func (f *Faults) closeListener() error {
	if f.listener == nil {
		return nil
	}
	l := f.listener
	f.listener = nil
	return l.Close()
}

// serve accepts connections until the listener is closed. The caller holds listening.
func (f *Faults) serve(l net.Listener) {
	f.listener = l
	f.wg.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				f.accept(conn, f.secure)
			case errors.Is(err, net.ErrClosed):
				return
			default: // no file descriptors, or the client has already closed the connection
				select {
				case <-time.After(acceptPause):
				case <-f.ctx.Done():
				}
			}
		}
	})
}

const acceptPause = 10 * time.Millisecond
