package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/usercode"
)

// attempt is a connection to a target. It keeps the first error, the reason of the failure: the library and the link
// only see that there is a failure.
type attempt struct {
	net.Conn
	target
	first atomic.Pointer[error]
}

// Read reads, and keeps the first error.
func (a *attempt) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if err != nil {
		a.note(err)
	}
	return n, err
}

// Write writes, and keeps the first error.
func (a *attempt) Write(p []byte) (int, error) {
	n, err := a.Conn.Write(p)
	if err != nil {
		a.note(err)
	}
	return n, err
}

// NetConn returns the connection below TLS.
func (a *attempt) NetConn() net.Conn {
	if t, ok := a.Conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return a.Conn
}

// note keeps err as the failure, unless a read or a write has failed before.
func (a *attempt) note(err error) { a.first.CompareAndSwap(nil, &err) }

// failure returns the reason of the connection's end; nil if this process has ended it.
func (a *attempt) failure(what string) error {
	first := a.first.Load()
	if first == nil || errors.Is(*first, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", a.name(), what, *first)
}

// connect opens a connection to t.
func (c *Conn) connect(ctx context.Context, t target) (net.Conn, error) {
	nc, err := call(ctx, c.hosts, "dial "+t.name(), func() (net.Conn, error) { return c.dialAndSecure(ctx, t) },
		func(nc net.Conn) { _ = nc.Close() })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name(), withoutContext(err))
	}
	return nc, nil
}

func (c *Conn) dialAndSecure(ctx context.Context, t target) (net.Conn, error) {
	nc, err := c.cfg.Dial(ctx, "tcp", t.address)
	switch {
	case err != nil:
		return nil, err
	case nc == nil:
		return nil, errors.New("the dialer has returned no connection")
	case c.cfg.Secure == nil:
		return nc, nil
	}
	host, _, err := net.SplitHostPort(t.server)
	if err == nil {
		var secured net.Conn
		if secured, err = c.cfg.Secure(ctx, nc, host); err == nil {
			return secured, nil
		}
	}
	_ = nc.Close()
	return nil, err
}

// withoutContext returns err as an error that matches no error of a context: the time for one try has ended, not the
// context of the caller.
func withoutContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("no answer: %w", os.ErrDeadlineExceeded)
	}
	return err
}

// errBusy means that a function of the program has not returned from an earlier call.
var errBusy = errors.New("still busy with an earlier call")

// call runs fn, a function of the program, on a goroutine of its own: if it ignores the end of ctx it delays nothing,
// and its late result is discarded. There is one call with a key at a time. A panic is an error, as is the end of the
// goroutine.
func call[T any](ctx context.Context, h *Hosts, key string, fn func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done, err := h.enter(ctx, key)
	if err != nil {
		return result{}.value, err
	}
	results := make(chan result)
	go func() {
		defer h.leave(key, done)
		r := result{err: usercode.Exited(key)}
		defer func() { // also when fn ends the goroutine
			select {
			case results <- r:
				return
			case <-ctx.Done():
			}
			select { // both may have been ready
			case results <- r:
			default:
				if r.err == nil && discard != nil {
					discard(r.value)
				}
			}
		}()
		defer usercode.Catch(key, &r.err)
		r.value, r.err = fn()
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		return result{}.value, ctx.Err()
	}
}

// enter waits until no other call with the key runs.
func (h *Hosts) enter(ctx context.Context, key string) (done chan struct{}, err error) {
	for {
		h.mu.Lock()
		busy := h.calls[key]
		if busy == nil {
			if h.calls == nil {
				h.calls = make(map[string]chan struct{})
			}
			done = make(chan struct{})
			h.calls[key] = done
			h.mu.Unlock()
			return done, nil
		}
		h.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, errBusy
		}
	}
}

func (h *Hosts) leave(key string, done chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, key)
	close(done)
}

// Wait waits up to limit until no call of a dialer or resolver runs, and reports whether that is so. It is called after
// the end of all sessions.
func (h *Hosts) Wait(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		h.mu.Lock()
		var busy chan struct{}
		for _, busy = range h.calls {
			break
		}
		h.mu.Unlock()
		if busy == nil {
			return true
		}
		select {
		case <-busy:
		case <-t.C:
			return false
		}
	}
}
