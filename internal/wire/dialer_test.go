package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/wire"
)

// stuckDialer ignores the end of its context, and returns connections to s when it is released.
type stuckDialer struct {
	s       *server
	release chan struct{}
	calls   atomic.Int32
	made    recorder[*closeCounter]
}

func (d *stuckDialer) dial(context.Context, string, string) (net.Conn, error) {
	d.calls.Add(1)
	<-d.release
	nc := &closeCounter{Conn: d.s.pipe()}
	d.made.add(nc)
	return nc, nil
}

type closeCounter struct {
	net.Conn
	closed atomic.Int32
}

func (c *closeCounter) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

func TestDialerThatNeverReturnsDoesNotBlock(t *testing.T) {
	for name, end := range map[string]func(c *client){
		"Close":   func(c *client) { c.Close() },
		"Abandon": func(c *client) { c.Abandon() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &stuckDialer{s: newServer(t), release: make(chan struct{})}
				hosts := new(wire.Hosts)
				c := open(t, wire.Config{Servers: []string{"a:1", "b:1"}, Dial: d.dial, Hosts: hosts})
				c.want(t, wire.Disconnected)
				<-time.After(time.Hour)
				if n := d.calls.Load(); n != 2 {
					t.Errorf("%d calls, want one for each server", n)
				}
				if err := c.LastError(); err == nil || !strings.Contains(err.Error(), "busy") {
					t.Errorf("last error %v", err)
				}
				start := time.Now()
				end(c)
				if took := time.Since(start); took > 0 {
					t.Errorf("took %s", took)
				}
				if hosts.Wait(time.Second) {
					t.Error("nothing is left, it seems")
				}
				close(d.release)
				if !hosts.Wait(time.Second) {
					t.Error("something is left")
				}
				for _, nc := range d.made.all() {
					if nc.closed.Load() == 0 {
						t.Error("a connection that came late is open")
					}
				}
			})
		})
	}
}

func TestDialerThatReturnsLateServesTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stuckDialer{s: newServer(t), release: make(chan struct{})}
		c := open(t, wire.Config{Servers: []string{"a:1"}, Dial: d.dial})
		<-time.After(time.Minute)
		close(d.release)
		c.await(t, wire.Connected)
	})
}

func TestDialerThatReturnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, nil } //nolint:nilnil // the case
		c := open(t, wire.Config{Servers: []string{"a:1"}, Dial: dial})
		c.want(t, wire.Disconnected)
		if c.LastError() == nil {
			t.Error("no error")
		}
	})
}

var errRefused = errors.New("no way")

func TestLastErrorSaysWhyThereIsNoConnection(t *testing.T) {
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errRefused }
	tests := map[string]struct {
		network network
		change  func(cfg *wire.Config)
		want    error
	}{
		"refused": {change: func(cfg *wire.Config) { cfg.Dial = refuse }, want: errRefused},
		"unknown name": {
			change: func(cfg *wire.Config) {
				cfg.Resolve = func(context.Context, string) ([]string, error) { return nil, errRefused }
			},
			want: errRefused,
		},
		"TLS": {
			network: network{"a:1": newServer(t)},
			change: func(cfg *wire.Config) {
				cfg.Secure = func(context.Context, net.Conn, string) (net.Conn, error) { return nil, errRefused }
			},
			want: errRefused,
		},
		"black hole":                {network: network{"a:1": blackHole}, want: os.ErrDeadlineExceeded},
		"mute":                      {network: network{"a:1": muteServer(t)}, want: os.ErrDeadlineExceeded},
		"hangs up in the handshake": {network: network{"a:1": dropping(t)}, want: io.EOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := network{"a:1": nil}
				switch s := tt.network["a:1"]; {
				case s == blackHole:
					n["a:1"] = s
				case s != nil: // of this bubble
					n["a:1"] = newServer(t)
					n["a:1"].greet = s.greet
				}
				cfg := dialTo(n)
				var reported recorder[error]
				cfg.OnFailure = reported.add
				if tt.change != nil {
					tt.change(&cfg)
				}
				c := open(t, cfg)
				c.want(t, wire.Disconnected)
				<-time.After(10 * time.Second)
				err := c.LastError()
				if !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "a:1: ") {
					t.Errorf("last error: %v, want %v", err, tt.want)
				}
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("%v looks like the end of a caller's context", err)
				}
				if n := len(reported.all()); n != 1 {
					t.Errorf("got %d failures, want the first", n)
				}
				c.Close()
				if got := c.LastError(); got == nil || got.Error() != err.Error() {
					t.Errorf("after Close: %v, want %v", got, err)
				}
			})
		})
	}
}

func TestLastErrorEndsWithAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg, servers := dialToSwitchboard(network{"a:1": nil})
		var reported, losses recorder[error]
		cfg.OnFailure, cfg.OnLoss = reported.add, losses.add
		c := open(t, cfg)
		c.want(t, wire.Disconnected)
		<-time.After(time.Millisecond)
		servers.set("a:1", s)
		c.await(t, wire.Connected)
		if err := c.LastError(); err != nil {
			t.Errorf("connected: %v", err)
		}
		<-time.After(time.Minute)
		servers.set("a:1", nil)
		s.next(t).cut()
		c.await(t, wire.Disconnected)
		<-time.After(time.Minute)
		if err := c.LastError(); err == nil {
			t.Error("no error")
		}
		if n := len(reported.all()); n != 2 {
			t.Errorf("got %d failures, want 2", n)
		}
		if all := losses.all(); len(all) != 1 || !errors.Is(all[0], io.EOF) {
			t.Errorf("losses %v, want one with EOF", all)
		}
	})
}
