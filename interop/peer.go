package interop

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// ErrExited is returned for a command that got no answer because the process ended.
var ErrExited = errors.New("interop: the Java process has ended")

// errEnded is how a process ends that was asked to.
var errEnded = errors.New("exit status 0")

// closeWait is how long a process may take to end by itself.
const closeWait = 10 * time.Second

//go:embed java/Peer.java
var peerSource []byte

// Curator is Java Curator under commands; the package comment lists them. Its virtual machine is set up to
// start fast and stay small.
var Curator = Program{
	Class:  "Peer",
	Source: peerSource,
	Flags:  []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"},
}

// Args are the arguments of a command.
type Args map[string]any

// Bytes are binary data in a command or an answer, where they are written in hex.
type Bytes []byte

// MarshalText gives the bytes in hex.
func (b Bytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText reads hex.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(Bytes{}, text)
	return err
}

// NodeStat is what Java says of a node.
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

// Event is something the process tells of unasked. Fields that do not belong to the kind are empty.
type Event struct {
	Kind   string `json:"event"`
	Client string // state: the client's name
	State  string // state: as in Java's ConnectionState
	Name   string // of the recipe's object
	Item   string // item: what was consumed; changed: the data
	Path   string // created, changed, deleted
}

// RemoteError is the exception a command ended with.
type RemoteError struct {
	Cmd     string
	Class   string // without its package, such as "NoNodeException"
	Message string
}

// Error says which command met what.
func (e *RemoteError) Error() string {
	return "interop: " + e.Cmd + ": " + e.Class + ": " + e.Message
}

// Peer is a running Java program. Its methods may be called from several goroutines.
type Peer struct {
	cmd    *exec.Cmd
	events chan Event
	quit   chan struct{} // closed by Close: events need no taker any more
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
	p := &Peer{
		cmd:     exec.Command("java", append(args, prog.Class)...),
		events:  make(chan Event, 1024),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
		pending: make(map[int64]chan answer),
	}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("interop: %w", err), stdout.Close())
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	go p.read(stdout) // ends with the process; Close waits for it
	return p, nil
}

// Call sends a command and waits for its answer, whose value is put into out unless that is nil. A command
// that threw an exception gives a [*RemoteError]. When ctx ends first, the command goes on in Java and its
// answer is dropped.
func (p *Peer) Call(ctx context.Context, cmd string, args Args, out any) error {
	id, answered := p.expect()
	defer p.forget(id)
	if err := p.send(id, cmd, args); err != nil {
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

// Events gives the events in the order they came; it is closed when the process has ended. The process is
// held up while 1024 of them wait to be taken.
func (p *Peer) Events() <-chan Event { return p.events }

// WaitEvent takes events until one matches.
func (p *Peer) WaitEvent(ctx context.Context, match func(Event) bool) (Event, error) {
	for {
		select {
		case ev, ok := <-p.events:
			if !ok {
				return Event{}, ErrExited
			}
			if match(ev) {
				return ev, nil
			}
		case <-ctx.Done():
			return Event{}, fmt.Errorf("interop: wait for event: %w", context.Cause(ctx))
		}
	}
}

// PID gives the id of the process, to read its memory and CPU time by.
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
		close(p.quit)
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
	close(p.events)
	close(p.done)
}

// take brings a line to who waits for it.
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
	select {
	case p.events <- ev:
	case <-p.quit:
	}
	return nil
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
func (p *Peer) send(id int64, cmd string, args Args) error {
	request := Args{"id": id, "cmd": cmd}
	maps.Copy(request, args)
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	// A failure to write means that the process ends, which says more about the reason.
	_, _ = p.stdin.Write(append(line, '\n'))
	return nil
}

// result turns the answer to a command into what Call returns.
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

// tail keeps the end of what is written to it.
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
