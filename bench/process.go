package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// process is this program as a contender.
type process struct {
	name     string
	cmd      *exec.Cmd
	stdin    io.Closer
	requests *json.Encoder
	answers  *json.Decoder
}

// startProcess starts it with more variables of the environment.
func startProcess(name string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, asChild, name)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{
		name: name, cmd: cmd, stdin: stdin, requests: json.NewEncoder(stdin), answers: json.NewDecoder(stdout),
	}, nil
}

func (p *process) connect(ctx context.Context, connect string) error {
	_, err := p.call(ctx, request{Connect: connect})
	return err
}

func (p *process) leave(ctx context.Context) error {
	_, err := p.call(ctx, request{})
	return err
}

func (p *process) run(ctx context.Context, l load) (result, error) {
	return p.call(ctx, request{Load: &l})
}

// call waits for the answer to q. If ctx ends first, the process cannot be used again.
func (p *process) call(ctx context.Context, q request) (r result, err error) {
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	var a answer
	if err = p.requests.Encode(q); err == nil {
		err = p.answers.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		return r, fmt.Errorf("%s: %w", p.name, err)
	case a.Error != "":
		return r, fmt.Errorf("%s: %s", p.name, a.Error)
	}
	return a.Result, nil
}

func (p *process) close() error {
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
