package main

import (
	"context"
	"errors"
)

// teams are the contenders that have been started.
type teams map[place]*team

// place is a library and the cores that it runs on: there is one contender for each.
type place struct {
	library string
	cores   cores
}

type team struct {
	contender
	connected bool
}

// connected returns a connected contender. The flags are for Java, if it starts one.
func (t teams) connected(ctx context.Context, at place, connect string, flags ...string) (contender, error) {
	if t[at] == nil {
		c, err := startedOn(at.cores, func() (contender, error) { return startContender(ctx, at, flags...) })
		if err != nil {
			return nil, err
		}
		t[at] = &team{contender: c}
	}
	m := t[at]
	if m.connected {
		return m, nil
	}
	m.connected = true
	return m, m.connect(ctx, connect)
}

// leave closes the connections of all contenders. It ends a contender that fails; the next row starts it again.
func (t teams) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for at, m := range t {
		if !m.connected {
			continue
		}
		m.connected = false
		if err := m.leave(ctx); err != nil {
			delete(t, at)
			errs = append(errs, err, m.close())
		}
	}
	return errors.Join(errs...)
}

// close ends all contenders.
func (t teams) close() error {
	var errs []error
	for at, m := range t {
		delete(t, at)
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}
