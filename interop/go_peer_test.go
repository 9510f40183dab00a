package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
)

// goPeerVariable makes the test binary a peer.
const goPeerVariable = "CURATOR_GO_PEER"

func startGoPeer() (*interop.Peer, error) {
	cmd := exec.Command(os.Args[0])
	// Nothing runs any more when it ends, for which the race detector would wait a second.
	cmd.Env = append(os.Environ(), goPeerVariable+"=1", "GORACE=atexit_sleep_ms=0")
	return interop.StartCommand(cmd)
}

// beGoPeer obeys commands until the input ends. They are those of Java for clients, locks, leaders and discovery,
// as far as the tests use them.
func beGoPeer() {
	p := &goPeer{out: json.NewEncoder(os.Stdout), scopes: make(map[string]*goScope)}
	err := p.serve(os.Stdin)
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// order is a command and its arguments.
type order struct {
	ID                               int64
	Cmd, Scope, Name                 string
	Connect, Path, Participant, Mode string
	Paths, Services                  []string
	Instance                         instance
	Leases, SessionTimeoutMs         int
	AutoRequeue                      bool
}

// goPeer is a program of ours that obeys commands.
type goPeer struct {
	mu     sync.Mutex
	out    *json.Encoder
	scopes map[string]*goScope
}

func (p *goPeer) serve(in io.Reader) error {
	var running sync.WaitGroup
	for lines := json.NewDecoder(in); ; {
		o := new(order)
		err := lines.Decode(o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s := p.scope(o.Scope)
		running.Go(func() {
			value, err := s.obey(o)
			if err != nil {
				p.write(map[string]any{"id": o.ID, "error": fmt.Sprintf("%T", err), "message": err.Error()})
				return
			}
			p.write(map[string]any{"id": o.ID, "ok": true, "value": value})
		})
	}
	var errs []error
	for _, s := range p.scopes {
		errs = append(errs, s.end())
	}
	running.Wait()
	return errors.Join(errs...)
}

func (p *goPeer) scope(name string) *goScope {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.scopes[name]
	if s == nil {
		s = &goScope{peer: p, name: name, commands: make(map[string]func(*order) (any, error))}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		p.scopes[name] = s
	}
	return s
}

func (p *goPeer) write(line map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(line); err != nil {
		panic(err)
	}
}

// goScope is a test's part of a goPeer: a client, and the commands to its objects.
type goScope struct {
	peer   *goPeer
	name   string
	ctx    context.Context // until the scope ends
	cancel context.CancelFunc

	mu       sync.Mutex
	client   *framework.Client
	commands map[string]func(*order) (any, error) // by their name and that of the object
	closers  []func() error
}

// obey runs a command, which gives the value of its answer.
func (s *goScope) obey(o *order) (any, error) {
	switch o.Cmd {
	case "start":
		return s.start(o)
	case "sessionId":
		return s.client.SessionID(), nil
	case "exists":
		return s.client.CheckExists().ForPath(s.ctx, o.Path)
	case "revoke":
		return nil, locks.Revoke(s.ctx, s.client, o.Path)
	case "latchStart":
		return nil, startLatch(s, o)
	case "selectorStart":
		return nil, startSelector(s, o)
	case "discoveryStart":
		return nil, startDiscovery(s, o)
	case "end":
		s.peer.mu.Lock()
		delete(s.peer.scopes, s.name)
		s.peer.mu.Unlock()
		return nil, s.end()
	}
	if lock := goLocks[o.Cmd]; lock != nil {
		lock(s, o)
		return nil, nil
	}
	s.mu.Lock()
	command := s.commands[o.Cmd+" "+o.Name]
	s.mu.Unlock()
	if command == nil {
		return nil, fmt.Errorf("no command %s to %q", o.Cmd, o.Name)
	}
	return command(o)
}

// on adds a command to the object that an order names.
func (s *goScope) on(cmd string, o *order, command func(*order) (any, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[cmd+" "+o.Name] = command
}

// event reports an event of the object that an order names.
func (s *goScope) event(kind string, o *order, item string) {
	s.peer.write(map[string]any{"event": kind, "scope": s.name, "name": o.Name, "item": item})
}

func (s *goScope) start(o *order) (session int64, err error) {
	timeout := time.Duration(o.SessionTimeoutMs) * time.Millisecond
	client, err := framework.New(o.Connect, framework.WithSessionTimeout(timeout))
	if err != nil {
		return 0, err
	}
	s.client = client // no other command comes before the answer
	s.closeAtEnd(client.Close)
	if err := client.Start(); err != nil {
		return 0, err
	}
	return client.SessionID(), client.BlockUntilConnected(s.ctx)
}

func (s *goScope) closeAtEnd(c func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, c)
}

// end closes everything, the newest first.
func (s *goScope) end() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i := range s.closers {
		errs = append(errs, s.closers[len(s.closers)-1-i]())
	}
	return errors.Join(errs...)
}
