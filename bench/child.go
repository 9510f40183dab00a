package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// request is an order for a child process: a server to connect to, work to do there, or neither, to leave it.
type request struct {
	Connect string `json:"connect,omitempty"`
	Load    *load  `json:"load,omitempty"`
}

// answer is the reply of a child to a request.
type answer struct {
	Result result `json:"result"`
	Error  string `json:"error,omitempty"`
}

// serveChild runs the program as a contender. It answers requests, one JSON value each, until in ends.
func serveChild(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	l, err := libraryNamed(name)
	if err != nil {
		return err
	}
	c := &child{library: l}
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := requests.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, c.leave(ctx))
		}
		var a answer
		if a.Result, err = c.obey(ctx, q); err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return errors.Join(err, c.leave(ctx))
		}
	}
}

// child has at most one target.
type child struct {
	library library
	target  *target
}

func (c *child) obey(ctx context.Context, q request) (r result, err error) {
	switch {
	case q.Connect != "":
		if err := c.leave(ctx); err != nil {
			return r, err
		}
		c.target, err = openTarget(ctx, c.library, q.Connect)
		return r, err
	case q.Load == nil:
		return r, c.leave(ctx)
	case c.target == nil:
		return r, fmt.Errorf("%s: not connected", q.Load.Case)
	}
	return c.target.run(ctx, *q.Load)
}

func (c *child) leave(ctx context.Context) error {
	if c.target == nil {
		return nil
	}
	t := c.target
	c.target = nil
	return t.close(ctx)
}
