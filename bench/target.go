package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// target is a server and the clients of one library. The clients stay connected for later runs.
type target struct {
	library library
	connect string
	clients []client
	runs    int
}

// openTarget connects a first client.
func openTarget(ctx context.Context, l library, connect string) (*target, error) {
	t := &target{library: l, connect: connect}
	if _, err := t.client(ctx, 0); err != nil {
		return nil, err
	}
	return t, nil
}

// client returns the client of a number, and opens the missing ones.
func (t *target) client(ctx context.Context, number int) (client, error) {
	for len(t.clients) <= number {
		c, err := connectTo(ctx, t.library.open, t.connect)
		if err != nil {
			return nil, err
		}
		t.clients = append(t.clients, c)
	}
	return t.clients[number], nil
}

// connectTo opens a client and waits for its first answer.
func connectTo(
	ctx context.Context, open func(connect string) (client, error), connect string,
) (client, error) {
	c, err := open(connect)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", connect, err)
	}
	if err := c.exists(ctx, "/"); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", connect, err), c.close())
	}
	return c, nil
}

// node creates a new node below the base and returns its path.
func (t *target) node(ctx context.Context, name string, data []byte) (string, error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return "", err
	}
	t.runs++
	_ = c.create(ctx, t.library.base, nil) // it exists since the first run; if not, the next create fails
	path := t.library.base + "/" + name + "-" + strconv.Itoa(t.runs)
	return path, c.create(ctx, path, data)
}

// close closes the clients. It removes the base first, if the base is empty.
func (t *target) close(ctx context.Context) error {
	var errs []error
	if len(t.clients) > 0 {
		_ = t.clients[0].deleteAll(ctx, []string{t.library.base}) // the base may be missing or not empty
	}
	for _, c := range t.clients {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
