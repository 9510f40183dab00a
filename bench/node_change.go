package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// runNodeChange writes a node, again and again, and reads it after the event. The latency is from the call of the write
// until the data is there: a cache has the same trips.
func runNodeChange(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	p, ok := c.(plainClient)
	if !ok {
		return r, fmt.Errorf("%T is not go-zookeeper's client", c)
	}
	data := make([]byte, l.Payload)
	path, err := t.node(ctx, "change", data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.deleteAll(ctx, []string{path})) }()
	_, _, changed, err := p.conn.GetW(path)
	if err != nil {
		return r, err
	}
	return loop(l.duration(), []operation{func() (_ time.Duration, err error) {
		start := time.Now()
		if _, err = p.conn.Set(path, data, -1); err != nil {
			return -1, err
		}
		<-changed
		_, _, changed, err = p.conn.GetW(path)
		return time.Since(start), err
	}}), nil
}
