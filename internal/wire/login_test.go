package wire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
	"github.com/gocurator/curator/sasl"
)

// mechanism logs in with a number of tokens.
type mechanism struct {
	rounds int
	start  func(ctx context.Context, host string) error // may be nil
	check  func(token []byte) error                     // of the server; may be nil
}

func (m mechanism) Start(ctx context.Context, host string) (sasl.Exchange, error) {
	if m.start != nil {
		if err := m.start(ctx, host); err != nil {
			return nil, err
		}
	}
	return &exchange{m: m}, nil
}

type exchange struct {
	m    mechanism
	sent int
}

func (e *exchange) Next(token []byte) ([]byte, bool, error) {
	if e.sent > 0 && e.m.check != nil {
		if err := e.m.check(token); err != nil {
			return nil, false, err
		}
	}
	if e.sent == e.m.rounds {
		return nil, true, nil
	}
	e.sent++
	return []byte{byte(e.sent)}, false, nil
}

// token answers a token of the client.
func (p *peer) token(r *request, token []byte) {
	p.answer(r.Xid, 0, jute.CodeOK, jute.AppendReply(nil, r.Op, &jute.Reply{Data: token}))
}

// refuse answers a request with a code, and hangs up.
func (p *peer) refuse(r *request, code jute.Code) {
	p.answer(r.Xid, 0, code, nil)
	p.cut()
}

// A server that requires a login refuses whatever comes before it, even a ping.
func TestLoginGoesAheadOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var sent recorder[jute.Op]
		s.serve = func(p *peer, r *request) bool {
			sent.add(r.Op)
			if r.Op != jute.OpSASL {
				return false
			}
			if req := r.decoded(t); len(req.Data) != 1 {
				t.Errorf("token %q", req.Data)
			}
			time.Sleep(900 * time.Millisecond) // all the patience of a first try
			p.token(r, []byte("more"))
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = time.Second
		cfg.Login = mechanism{rounds: 1, check: func(token []byte) error {
			if string(token) != "more" {
				return fmt.Errorf("token %q", token)
			}
			return nil
		}}
		cfg.Auth = []jute.Auth{{Scheme: "digest", Auth: []byte("a:b")}}
		cfg.Zxid = 77
		c := open(t, cfg)
		c.await(t, wire.Connected)
		if c.Known() != 77 {
			t.Errorf("zxid %d after a login", c.Known())
		}
		a := newAnswers()
		if err := c.Submit(watch(jute.OpGetData, "/a", newWatcher(), a), true); err != nil {
			t.Fatal(err)
		}
		receive(t, a)
		sent.clear()
		s.cutAll()
		c.await(t, wire.Connected)
		c.ask(t, get("/b", nil))
		want := []jute.Op{jute.OpSASL, jute.OpAuth, jute.OpSetWatches, jute.OpGetData}
		if diff := cmp.Diff(want, sent.all()); diff != "" {
			t.Errorf("requests of a new connection (-want +got):\n%s", diff)
		}
	})
}

// Each refusal has its reason, at once, and is no end: the client goes on trying.
func TestLoginRefusals(t *testing.T) {
	refused := func(code jute.Code) func(*peer, *request) {
		return func(p *peer, r *request) { p.refuse(r, code) }
	}
	tests := []struct {
		name   string
		rounds int
		answer func(p *peer, r *request) // to the last token
		check  error
		says   string
		is     error
	}{
		{
			name: "the first token", rounds: 1, answer: refused(jute.CodeAuthFailed), says: "the first token",
			is: zk.ErrAuthFailed,
		},
		{
			name: "a later token", rounds: 2, answer: refused(jute.CodeAuthFailed), says: "user or the password",
			is: zk.ErrAuthFailed,
		},
		{
			name: "another login is required", rounds: 2, answer: refused(jute.CodeSessionClosedRequireSASL),
			says: "user or the password", is: jute.ErrSessionClosedRequireSASL,
		},
		{
			name: "a server without SASL", rounds: 1, answer: func(p *peer, r *request) { p.token(r, nil) },
			says: "no SASL", is: zk.ErrAuthFailed,
		},
		{
			name: "a server that cannot prove itself", rounds: 1,
			answer: func(p *peer, r *request) { p.token(r, []byte("?")) },
			check:  fmt.Errorf("%w: no proof", zk.ErrAuthFailed), says: "no proof", is: zk.ErrAuthFailed,
		},
		{
			name: "a login without an end", rounds: 100,
			answer: func(p *peer, r *request) { p.token(r, []byte("more")) },
			says:   "has no end", is: zk.ErrAuthFailed,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				var well atomic.Bool
				s.serve = func(p *peer, r *request) bool {
					switch {
					case r.Op != jute.OpSASL:
						return false
					case well.Load(), int(r.decoded(t).Data[0]) < tt.rounds && tt.rounds < 100:
						p.token(r, []byte("more"))
					default:
						tt.answer(p, r)
					}
					return true
				}
				cfg := dialTo(network{"a:1": s})
				cfg.Login = mechanism{rounds: tt.rounds, check: func([]byte) error {
					if well.Load() {
						return nil
					}
					return tt.check
				}}
				if tt.rounds == 100 {
					cfg.Login = &changing{&well}
				}
				c := open(t, cfg)
				for range 5 {
					c.want(t, wire.LoginRefused)
				}
				for _, err := range []error{c.Refusal(), c.LastError(), c.Submit(get("/a", newAnswers()), true)} {
					if !errors.Is(err, zk.ErrAuthFailed) || !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("the error is %v", err)
					}
				}
				well.Store(true)
				c.await(t, wire.Connected)
				if err := c.Refusal(); err != nil {
					t.Errorf("refused while it is connected: %v", err)
				}
				c.ask(t, get("/a", nil))
			})
		})
	}
}

// changing logs in with 100 tokens until a server is well, then with one.
type changing struct{ well *atomic.Bool }

func (m *changing) Start(ctx context.Context, host string) (sasl.Exchange, error) {
	if m.well.Load() {
		return mechanism{rounds: 1}.Start(ctx, host)
	}
	return mechanism{rounds: 100}.Start(ctx, host)
}

// One server of three that refuses the login does not stop the client.
func TestLoginRefusedByOneOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		var at atomic.Pointer[server] // where the client is logged in
		for _, name := range []string{"a:1", "b:1", "c:1"} {
			s := newServer(t)
			s.serve = func(p *peer, r *request) bool {
				switch {
				case r.Op != jute.OpSASL:
					return false
				case name == "a:1":
					p.refuse(r, jute.CodeAuthFailed)
				default:
					at.Store(s)
					p.token(r, []byte("more"))
				}
				return true
			}
			n[name] = s
		}
		cfg := dialTo(n)
		hosts := recorder[string]{}
		cfg.Login = mechanism{rounds: 1, start: func(_ context.Context, host string) error {
			hosts.add(host)
			return nil
		}}
		failures := recorder[error]{}
		cfg.OnFailure = failures.add
		c := open(t, cfg)
		for range 30 {
			for state := wire.Disconnected; state != wire.Connected; {
				if state = receive(t, c.states); state == wire.LoginRefused {
					t.Fatal("refused by all")
				}
				if err := c.Submit(get("/a", newAnswers()), true); errors.Is(err, zk.ErrAuthFailed) {
					t.Fatal(err)
				}
			}
			start := time.Now()
			c.ask(t, get("/a", nil))
			at.Load().cutAll() // no other: the client may be there before the next line
			if took := time.Since(start); took > time.Second {
				t.Errorf("connected after %v", took)
			}
			c.await(t, wire.Disconnected)
		}
		for _, host := range []string{"a", "b", "c"} {
			if !slices.Contains(hosts.all(), host) {
				t.Errorf("no login at %s, but at %v", host, hosts.all())
			}
		}
		if all := failures.all(); len(all) == 0 || !errors.Is(all[0], zk.ErrAuthFailed) {
			t.Errorf("the failures are %v", all)
		}
	})
}

// A mechanism that needs another service fails as a connect does, unless it says that the credentials are wrong.
func TestLoginThatCannotStart(t *testing.T) {
	away := errors.New("the KDC is away")
	unknown := fmt.Errorf("%w: unknown principal", zk.ErrAuthFailed)
	for _, tt := range []struct {
		err  error
		want wire.State
	}{{away, wire.Disconnected}, {unknown, wire.LoginRefused}} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(p *peer, r *request) bool {
					if r.Op == jute.OpSASL {
						p.token(r, []byte("more"))
					}
					return r.Op == jute.OpSASL
				}
				var well atomic.Bool
				cfg := dialTo(network{"a:1": s})
				cfg.Login = mechanism{rounds: 1, start: func(context.Context, string) error {
					if well.Load() {
						return nil
					}
					return tt.err
				}}
				c := open(t, cfg)
				for range 3 {
					c.want(t, tt.want)
				}
				if err := c.LastError(); !errors.Is(err, tt.err) || !strings.HasPrefix(err.Error(), "a:1: login: ") {
					t.Errorf("the last error is %v", err)
				}
				empty(t, s.peers) // no connection was opened
				well.Store(true)
				c.await(t, wire.Connected)
			})
		})
	}
}

// The time for a connect bounds the login too, what the mechanism waits for included.
func TestLoginThatHangs(t *testing.T) {
	for _, who := range []string{"the mechanism", "the server"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, well := newServer(t), newServer(t)
				s.serve = func(_ *peer, r *request) bool { return r.Op == jute.OpSASL }
				well.serve = func(p *peer, r *request) bool {
					if r.Op == jute.OpSASL {
						p.token(r, []byte("more"))
					}
					return r.Op == jute.OpSASL
				}
				cfg := dialTo(network{"a:1": s, "b:1": well})
				cfg.Login = mechanism{rounds: 1, start: func(ctx context.Context, host string) error {
					if host == "a" && who == "the mechanism" {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}}
				start := time.Now()
				c := open(t, cfg)
				c.await(t, wire.Connected)
				if took := time.Since(start); took > cfg.ConnectTimeout+2*time.Second {
					t.Errorf("connected after %v", took)
				}
				if err := c.LastError(); err != nil || c.Peer() != "b:1" {
					t.Errorf("connected to %q, %v", c.Peer(), err)
				}
			})
		})
	}
}

// Bytes that are no answer to a token end the connection, not the process, and take no memory.
func TestLoginAnswersThatLie(t *testing.T) {
	for name, lie := range map[string]func(p *peer, r *request){
		"another request": func(p *peer, r *request) { p.answer(r.Xid+1, 0, jute.CodeOK, []byte{0, 0, 0, 0}) },
		"no body":         func(p *peer, r *request) { p.answer(r.Xid, 0, jute.CodeOK, nil) },
		"a long token":    func(p *peer, r *request) { p.answer(r.Xid, 0, jute.CodeOK, []byte{0x7f, 0, 0, 0}) },
		"a long frame":    func(p *peer, _ *request) { p.raw([]byte{0x7f, 0, 0, 0}) },
		"no header":       func(p *peer, _ *request) { p.send([]byte{1}) },
		"nothing":         func(p *peer, _ *request) { p.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				var well atomic.Bool
				s.serve = func(p *peer, r *request) bool {
					switch {
					case r.Op != jute.OpSASL:
						return false
					case well.Load():
						p.token(r, []byte("more"))
					default:
						lie(p, r)
					}
					return true
				}
				cfg := dialTo(network{"a:1": s})
				cfg.Login = mechanism{rounds: 1}
				c := open(t, cfg)
				c.want(t, wire.Disconnected)
				if err := c.LastError(); err == nil || errors.Is(err, zk.ErrAuthFailed) {
					t.Errorf("the last error is %v", err)
				}
				well.Store(true)
				c.await(t, wire.Connected)
			})
		})
	}
}

// A server that requires a login accepts everybody's connect request. A client without one learns that before it counts
// as connected, and asks again before the next connection counts.
func TestProbeFindsThatALoginIsRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var required atomic.Bool
		s.serve = func(p *peer, r *request) bool {
			if required.Load() && r.Op != jute.OpAuth {
				p.refuse(r, jute.CodeSessionClosedRequireSASL)
				return true
			}
			return false
		}
		s.probed = func(p *peer, r *request) bool { return s.serve(p, r) }
		required.Store(true)
		cfg := dialTo(network{"a:1": s})
		cfg.Probe = true
		cfg.Auth = []jute.Auth{{Scheme: "digest", Auth: []byte("a:b")}}
		c := open(t, cfg)
		for range 5 {
			c.want(t, wire.LoginRefused)
		}
		if err := c.Refusal(); !errors.Is(err, zk.ErrAuthFailed) || !errors.Is(err, jute.ErrSessionClosedRequireSASL) {
			t.Errorf("the refusal is %v", err)
		}
		required.Store(false)
		c.await(t, wire.Connected)
		c.ask(t, get("/a", nil))
		required.Store(true) // the server was configured anew
		a := newAnswers()
		if err := c.Submit(get("/a", a), true); err != nil {
			t.Fatal(err)
		}
		if r := receive(t, a); !errors.Is(r.Err, jute.ErrConnectionLoss) {
			t.Errorf("the request ended with %v", r.Err)
		}
		c.want(t, wire.Disconnected)
		for range 3 {
			c.want(t, wire.LoginRefused)
		}
	})
}

// Credentials of the scheme of addAuth that are refused end a probe too.
func TestProbeFindsThatCredentialsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpAuth {
				p.refuse(r, jute.CodeAuthFailed)
			}
			return r.Op == jute.OpAuth
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Probe = true
		cfg.Auth = []jute.Auth{{Scheme: "nonsense"}}
		c := open(t, cfg)
		c.want(t, wire.AuthFailed)
		if err := c.Refusal(); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("the refusal is %v", err)
		}
	})
}
