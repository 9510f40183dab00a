package interop

import (
	"bufio"
	"context"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrExited is returned for a command that got no answer because the process ended.
var ErrExited = errors.New("interop: the process has ended")

// errEnded is the end of a process on request.
var errEnded = errors.New("exit status 0")

// closeWait is how long a process may take to end by itself, on a busy machine too.
const closeWait = 30 * time.Second

//go:embed java/*.java
var peerFiles embed.FS

// Curator is Java Curator under commands; the package comment lists them. Its virtual machine is set up to
// start fast and stay small.
var Curator = Program{
	Class:   "Peer",
	Sources: sub(peerFiles, "java"),
	Flags:   []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"},
}

func sub(files fs.FS, dir string) fs.FS {
	files, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // dir is none of a caller's choice
	}
	return files
}

// Args are the arguments of a command.
type Args map[string]any

// Bytes are binary data in a command or an answer, where they are written in hex.
type Bytes []byte

// MarshalText returns the bytes in hex.
func (b Bytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText reads hex.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(Bytes{}, text)
	return err
}

// NodeStat is Java's Stat of a node.
type NodeStat struct {
	Czxid, Mzxid, Pzxid     int64
	Version, Cversion       int32
	EphemeralOwner          int64
	DataLength, NumChildren int32
}

// NodeData is a node as Java reads it.
type NodeData struct {
	Data Bytes
	Stat NodeStat
}

// Participant is a contender for leadership, as Java sees it.
type Participant struct {
	ID     string
	Leader bool
}

// Count is a shared count as Java read it.
type Count struct {
	Value, Version int
}

// Shared is a shared value as Java read it.
type Shared struct {
	Value   Bytes
	Version int
}

// Event is a report of the process that no command caused. Fields that do not belong to the kind are empty.
type Event struct {
	Kind    string `json:"event"`
	Scope   string // where the object is
	Client  string // state: the client's name
	State   string // state: as in Java's ConnectionState
	Name    string // of the recipe's object
	Item    string // item, refused: what was to consume; counted: the number
	Path    string // created, changed, deleted
	Data    Bytes  // created, changed: nil if the node has none
	OldData Bytes  // changed, deleted
}

// RemoteError is the exception a command ended with.
type RemoteError struct {
	Cmd     string
	Class   string // without its package, such as "NoNodeException"
	Message string
}

// Error names the command and its failure.
func (e *RemoteError) Error() string {
	return "interop: " + e.Cmd + ": " + e.Class + ": " + e.Message
}

// Peer is a running Java program. Its methods may be called from several goroutines.
type Peer struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended and nothing runs for it
	exit   error         // how it ended, never nil; set before done is closed
	stderr tail

	sending sync.Mutex // one line at a time
	stdin   io.WriteCloser

	mu      sync.Mutex
	killed  bool
	closed  bool
	lastID  int64
	pending map[int64]chan answer
	events  []Event       // not taken yet, in the order of arrival
	arrived chan struct{} // closed when one comes
}

// Scope is a part of a [Peer], with clients and objects of its own: a test gets one, and the process serves many.
type Scope struct {
	peer *Peer
	name string
}

// answer is any line from the process: the answer to a command, or an event.
type answer struct {
	ID      int64
	Event   string
	Value   json.RawMessage
	Error   string
	Message string
}

// Start compiles the program if need be and starts it. ctx bounds the compiling only: the process lives until
// Close.
func Start(ctx context.Context, prog Program) (*Peer, error) {
	dir, err := Compile(ctx, prog)
	if err != nil {
		return nil, err
	}
	classPath, err := ClassPath()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"-cp", classPath + string(filepath.ListSeparator) + dir,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
	}, prog.Flags...)
	return start(exec.Command("java", append(args, prog.Class)...))
}

// start starts a program that obeys commands, of whichever language.
func start(cmd *exec.Cmd) (*Peer, error) {
	p := &Peer{
		cmd:     cmd,
		done:    make(chan struct{}),
		pending: make(map[int64]chan answer),
		arrived: make(chan struct{}),
	}
	cmd.Stderr = &p.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("interop: %w", err), stdout.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	go p.read(stdout) // ends with the process; Close waits for it
	return p, nil
}

// Scope returns the part of the process with that name.
func (p *Peer) Scope(name string) *Scope { return &Scope{peer: p, name: name} }

// Call is [Scope.Call] for the part without a name.
func (p *Peer) Call(ctx context.Context, cmd string, args Args, out any) error {
	return p.Scope("").Call(ctx, cmd, args, out)
}

// WaitEvent is [Scope.WaitEvent] for the part without a name.
func (p *Peer) WaitEvent(ctx context.Context, match func(Event) bool) (Event, error) {
	return p.Scope("").WaitEvent(ctx, match)
}

// Peer returns the process that the scope is a part of.
func (s *Scope) Peer() *Peer { return s.peer }

// Call sends a command and waits for its answer, whose value is put into out unless that is nil. A command
// that threw an exception gives a [*RemoteError]. When ctx ends first, the command goes on in Java and its
// answer is dropped.
func (s *Scope) Call(ctx context.Context, cmd string, args Args, out any) error {
	p := s.peer
	id, answered := p.expect()
	defer p.forget(id)
	request := Args{"id": id, "cmd": cmd, "scope": s.name}
	maps.Copy(request, args)
	if err := p.send(request); err != nil {
		return fmt.Errorf("interop: %s: %w", cmd, err)
	}
	select {
	case a := <-answered:
		return a.result(cmd, out)
	case <-ctx.Done():
		return fmt.Errorf("interop: %s: %w", cmd, context.Cause(ctx))
	case <-p.done:
	}
	select {
	case a := <-answered: // its last words
		return a.result(cmd, out)
	default:
		return fmt.Errorf("%w: %s: %w", ErrExited, cmd, p.exit)
	}
}

// WaitEvent waits for an event that matches, and takes it: the next call gets another one. Those before it that do
// not match stay for other calls, in their order.
func (s *Scope) WaitEvent(ctx context.Context, match func(Event) bool) (Event, error) {
	for {
		ended := s.peer.ended()
		ev, found, arrived := s.peer.takeEvent(func(ev Event) bool { return ev.Scope == s.name && match(ev) })
		if found {
			return ev, nil
		}
		if ended {
			return Event{}, ErrExited
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("interop: wait for event: %w", context.Cause(ctx))
		case <-s.peer.done:
		}
	}
}

// TakeEvents takes the events that are there.
func (s *Scope) TakeEvents() (events []Event) {
	for {
		ev, found, _ := s.peer.takeEvent(func(ev Event) bool { return ev.Scope == s.name })
		if !found {
			return events
		}
		events = append(events, ev)
	}
}

// Close closes the clients of the scope, and before them their objects. Its name can be used again.
func (s *Scope) Close(ctx context.Context) error {
	err := s.Call(ctx, "end", nil, nil)
	s.TakeEvents()
	return err
}

// PID returns the id of the process, to read its memory and CPU time by.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Kill ends the process as a crash would: its sessions stay at the server until they time out.
func (p *Peer) Kill() error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("interop: %w", err)
	}
	<-p.done
	return nil
}

// Close lets the program close its clients, and waits until the process and everything that ran for it have
// ended. Calls that wait for an answer get [ErrExited].
func (p *Peer) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		_ = p.stdin.Close()
	}
	p.mu.Unlock()
	late := time.AfterFunc(closeWait, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || errors.Is(p.exit, errEnded) {
		return nil
	}
	return fmt.Errorf("interop: %w", p.exit)
}

// read takes the process's lines until it ends, and then itself.
func (p *Peer) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		if err := p.take(line); err != nil {
			_, _ = fmt.Fprintf(&p.stderr, "%v in line %s", err, line)
			_ = p.cmd.Process.Kill()
		}
	}
	p.exit = errEnded
	if err := p.cmd.Wait(); err != nil {
		p.exit = fmt.Errorf("%w\n%s", err, p.stderr.text)
	}
	close(p.done)
}

// take passes a line to its waiter.
func (p *Peer) take(line []byte) error {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Event == "" {
		p.mu.Lock()
		answered := p.pending[a.ID]
		p.mu.Unlock()
		if answered != nil {
			answered <- a // has room for the one answer
		}
		return nil
	}
	var ev Event
	if err := json.Unmarshal(line, &ev); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, ev)
	close(p.arrived)
	p.arrived = make(chan struct{})
	return nil
}

// ended reports whether the process has ended: no event comes any more.
func (p *Peer) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// takeEvent takes the first event that matches. If there is none, arrived is closed when another one comes.
func (p *Peer) takeEvent(match func(Event) bool) (ev Event, found bool, arrived <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.events, match)
	if i < 0 {
		return Event{}, false, p.arrived
	}
	ev = p.events[i]
	p.events = slices.Delete(p.events, i, i+1)
	return ev, true, nil
}

func (p *Peer) expect() (id int64, answered chan answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	answered = make(chan answer, 1)
	p.pending[p.lastID] = answered
	return p.lastID, answered
}

func (p *Peer) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
}

// send writes a command; it fails only for arguments that cannot be written.
func (p *Peer) send(request Args) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	// A failure to write means that the process ends. Its end has a better error.
	_, _ = p.stdin.Write(append(line, '\n'))
	return nil
}

// result turns the answer to a command into the result of Call.
func (a *answer) result(cmd string, out any) error {
	if a.Error != "" {
		return &RemoteError{Cmd: cmd, Class: a.Error, Message: a.Message}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, out); err != nil {
		return fmt.Errorf("interop: %s: %w", cmd, err)
	}
	return nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = t.text[extra:]
	}
	return len(b), nil
}
