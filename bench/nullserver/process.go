package nullserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
)

// Run runs the server as a whole program. It listens on a free port of the loopback interface, writes the address to
// out as one line, and serves until in ends.
func Run(in io.Reader, out io.Writer) error {
	s, err := New()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, s.Addr())
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return errors.Join(err, s.Close())
}

// Process is a server in a process of its own.
type Process struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// Spawn starts a command that calls [Run] with its standard input and output. cmd has neither set. ctx bounds the wait
// for the server's address, not the life of the server.
func Spawn(ctx context.Context, cmd *exec.Cmd) (*Process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("nullserver: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nullserver: %w", err), stdin.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("nullserver: %w", err)
	}
	p := &Process{cmd: cmd, stdin: stdin}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	p.addr = strings.TrimSpace(line)
	if err == nil {
		_, _, err = net.SplitHostPort(p.addr)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nullserver: start: %w", err), p.Close())
	}
	return p, nil
}

// Addr returns the address of the server, as host:port.
func (p *Process) Addr() string { return p.addr }

// Close ends the process and waits for it.
func (p *Process) Close() error {
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("nullserver: %w", err)
	}
	return nil
}
