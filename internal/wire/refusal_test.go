package wire_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
	"github.com/gocurator/curator/sasl"
)

// loginServer returns a server that accepts or refuses every login.
func loginServer(t *testing.T, accepts bool) *server {
	t.Helper()
	s := newServer(t)
	s.serve = func(p *peer, r *request) bool {
		switch {
		case r.Op != jute.OpSASL:
			return false
		case accepts:
			p.token(r, []byte("more"))
		default:
			p.refuse(r, jute.CodeAuthFailed)
		}
		return true
	}
	return s
}

// resolveTo returns a resolver that knows the addresses of every name.
func resolveTo(addresses ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return slices.Clone(addresses), nil }
}

// A name may stand for several servers. One of them that refuses the login does not stop the client.
func TestLoginRefusedByOneAddressOfAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10 { // the order of the addresses is random
			cfg := dialTo(network{"10.0.0.1:1": loginServer(t, false), "10.0.0.2:1": loginServer(t, true)})
			cfg.Servers, cfg.Resolve = []string{"zk:1"}, resolveTo("10.0.0.1", "10.0.0.2")
			cfg.Login = mechanism{rounds: 1}
			c := open(t, cfg)
			for state := wire.Disconnected; state != wire.Connected; {
				if state = receive(t, c.states); state == wire.LoginRefused {
					t.Fatalf("refused by all: %v", c.LastError())
				}
			}
			c.Close()
		}
	})
}

// An address that is away, as that of the other family of a host, does not hide that the login is refused.
func TestLoginRefusedByTheOnlyAddressThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10 {
			cfg := dialTo(network{"10.0.0.1:1": loginServer(t, false), "10.0.0.2:1": nil})
			cfg.Servers, cfg.Resolve = []string{"zk:1"}, resolveTo("10.0.0.1", "10.0.0.2")
			cfg.Login = mechanism{rounds: 1}
			c := open(t, cfg)
			c.await(t, wire.LoginRefused)
			for range 5 { // it stays, also in the middle of a pass
				c.want(t, wire.LoginRefused)
				if err := c.Refusal(); !errors.Is(err, zk.ErrAuthFailed) {
					t.Fatalf("the refusal is %v", err)
				}
			}
			c.Close()
		}
	})
}

// A new list of servers decides anew whether all refuse.
func TestRefusalEndsWithTheListOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{"a:1": loginServer(t, false), "b:1": loginServer(t, false), "c:1": nil}
		cfg := dialTo(n)
		cfg.Servers, cfg.Login = []string{"a:1", "b:1"}, mechanism{rounds: 1}
		c := open(t, cfg)
		c.await(t, wire.LoginRefused)
		c.UpdateServers([]string{"a:1", "c:1"})
		if err := c.Refusal(); err != nil {
			t.Errorf("with a server that was never tried: %v", err)
		}
		c.UpdateServers([]string{"a:1"})
		if err := c.Refusal(); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("the only server has refused, but %v", err)
		}
		c.UpdateServers([]string{"b:1"})
		if err := c.Refusal(); err != nil {
			t.Errorf("with a server that is new again: %v", err)
		}
		c.await(t, wire.LoginRefused)
	})
}

// A list that comes while an address refuses the login leaves the other addresses of its name to be tried.
func TestNewListWhileAnAddressRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10 { // the order of the addresses is random
			var c *client
			opened := make(chan struct{})
			s := newServer(t)
			s.serve = func(p *peer, r *request) bool {
				if r.Op != jute.OpSASL {
					return false
				}
				<-opened
				c.UpdateServers([]string{"zk:1"})
				p.refuse(r, jute.CodeAuthFailed)
				return true
			}
			cfg := dialTo(network{"10.0.0.1:1": s, "10.0.0.2:1": loginServer(t, true)})
			cfg.Servers, cfg.Resolve = []string{"zk:1", "other:1"}, resolveTo("10.0.0.1", "10.0.0.2")
			cfg.Login = mechanism{rounds: 1}
			c = open(t, cfg)
			close(opened)
			for state := wire.Disconnected; state != wire.Connected; {
				if state = receive(t, c.states); state == wire.LoginRefused {
					t.Fatalf("refused by all: %v", c.LastError())
				}
			}
			c.Close()
		}
	})
}

// odd is a mechanism whose function answers the server.
type odd func(token []byte) ([]byte, bool, error)

func (f odd) Start(context.Context, string) (sasl.Exchange, error) { return f, nil }

func (f odd) Next(token []byte) ([]byte, bool, error) { return f(token) }

// choosy has one mechanism for the first host and another one for the others.
type choosy struct{ a, others sasl.Mechanism }

func (m choosy) Start(ctx context.Context, host string) (sasl.Exchange, error) {
	if host == "a" {
		return m.a.Start(ctx, host)
	}
	return m.others.Start(ctx, host)
}

// Code of the program that misbehaves costs the try of a server, not the client.
func TestLoginByCodeThatMisbehaves(t *testing.T) {
	release := make(chan struct{})
	for name, bad := range map[string]sasl.Mechanism{
		"a start that panics":       mechanism{start: func(context.Context, string) error { panic("oops") }},
		"a start that ends":         mechanism{start: func(context.Context, string) error { runtime.Goexit(); return nil }},
		"a token that panics":       odd(func([]byte) ([]byte, bool, error) { panic("oops") }),
		"a token that ends":         odd(func([]byte) ([]byte, bool, error) { runtime.Goexit(); return nil, true, nil }),
		"a token that is not ready": odd(func([]byte) ([]byte, bool, error) { <-release; return nil, true, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				defer close(release)
				cfg := dialTo(network{"a:1": loginServer(t, true), "b:1": loginServer(t, true)})
				cfg.Login = choosy{bad, mechanism{rounds: 1}}
				for range 5 { // the order of the servers is random
					start := time.Now()
					c := open(t, cfg)
					c.await(t, wire.Connected)
					if took := time.Since(start); took > 2*time.Second || c.Peer() != "b:1" {
						t.Errorf("connected to %s after %v", c.Peer(), took)
					}
					c.Close()
				}
			})
		})
	}
}

// A mechanism that does not return holds neither a close nor the end of a session.
func TestCloseDuringALoginThatHangs(t *testing.T) {
	for _, end := range []string{"Close", "Abandon"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				var called atomic.Bool
				cfg := dialTo(network{"a:1": loginServer(t, true)})
				cfg.Login = odd(func([]byte) ([]byte, bool, error) { called.Store(true); <-release; return nil, true, nil })
				c := open(t, cfg)
				synctest.Wait()
				if !called.Load() {
					t.Fatal("no login")
				}
				start := time.Now()
				if end == "Close" {
					c.Close()
				} else {
					c.Abandon()
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("closed after %v", took)
				}
			})
		})
	}
}

// A login that is complete sends nothing more, whatever the mechanism returns beside that.
func TestLoginEndsWithoutAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(_ *peer, r *request) bool {
			if r.Op == jute.OpSASL {
				t.Error("a token behind the end")
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Login = odd(func([]byte) ([]byte, bool, error) { return []byte("late"), true, nil })
		c := open(t, cfg)
		c.await(t, wire.Connected)
		c.ask(t, get("/a", nil))
	})
}

// A nil token is sent as an empty one: a server does not answer to null.
func TestLoginWithANilToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op != jute.OpSASL {
				return false
			}
			if data := r.decoded(t).Data; data == nil {
				t.Error("null")
			}
			p.token(r, []byte("more"))
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Login = odd(func(token []byte) ([]byte, bool, error) { return nil, token != nil, nil })
		c := open(t, cfg)
		c.await(t, wire.Connected)
	})
}

// An order function that panics or ends its goroutine orders nothing.
func TestOrderThatMisbehaves(t *testing.T) {
	for name, order := range map[string]func(context.Context, []string) []string{
		"panics":             func(context.Context, []string) []string { panic("oops") },
		"ends its goroutine": func(context.Context, []string) []string { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := dialTo(network{"a:1": newServer(t)})
				cfg.Order = order
				var log bytes.Buffer
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				start := time.Now()
				c := open(t, cfg)
				c.await(t, wire.Connected)
				if took := time.Since(start); took > 0 {
					t.Errorf("connected after %v", took)
				}
				c.Close()
				if got := log.String(); strings.Contains(got, "panic in the order of the servers") != (name == "panics") {
					t.Errorf("the log is %q", got)
				}
			})
		})
	}
}

// A server that is gone from the list is not tried, also if its connections did not last.
func TestOrderForgetsAServerThatFlapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{"a:1": newServer(t), "b:1": nil}
		cfg := dialTo(n)
		cfg.Servers = []string{"a:1"}
		cfg.Order = func(_ context.Context, servers []string) []string { return servers }
		var gone atomic.Bool
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if gone.Load() && strings.HasPrefix(address, "a:") {
				t.Error("dialed a server that is gone")
			}
			return dial(ctx, network, address)
		}
		c := open(t, cfg)
		c.await(t, wire.Connected)
		time.Sleep(time.Millisecond)
		c.ask(t, get("/a", nil))
		gone.Store(true)
		c.UpdateServers([]string{"b:1"})
		n["a:1"].cutAll() // soon after its answer
		for range 3 {
			c.want(t, wire.Disconnected)
		}
	})
}
