package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gocurator/curator/callbacks"
)

const (
	pipelined    = 1000 // creates
	pipelinePath = "/pipeline"
)

// pipeline creates many nodes without waiting for one before the next: the results come to a callback, in the order of
// the calls.
func pipeline(ctx context.Context, s *stage) error {
	s.out.step("Operations in the background")
	s.out.say("%d creates, submitted without waiting", pipelined)
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is lost: all it did was waited for
	if _, err := client.Create().ForPath(ctx, pipelinePath, nil); err != nil {
		return err
	}

	start := time.Now()
	results := newInOrder(pipelined)
	create := client.Create().InBackground(results.take) // a builder is a value: it can be kept and used again
	for i := range pipelined {
		if err := create.ForPath(ctx, item(i), []byte("some data")); err != nil {
			return err // it was not accepted; a failure of the create itself would go to the callback
		}
	}
	submitted := time.Since(start)
	select {
	case <-results.complete:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.out.say("submitted in %v, done in %v", submitted.Round(time.Microsecond), time.Since(start).Round(time.Microsecond))
	if results.err != nil {
		return results.err
	}

	children, err := client.GetChildren().ForPath(ctx, pipelinePath)
	if err != nil {
		return err
	}
	s.out.check(results.outOfOrder == 0, "the %d callbacks came in the order of the calls", results.next)
	s.out.check(len(children) == pipelined, "%d nodes are there", len(children))
	return nil
}

// item returns the path of the i-th node.
func item(i int) string { return fmt.Sprintf("%s/item-%04d", pipelinePath, i) }

// inOrder takes the results. Callbacks run one at a time, so it needs no lock; its fields may be read when complete is
// closed.
type inOrder struct {
	complete   chan struct{}
	want       int
	next       int
	outOfOrder int
	err        error // the first
}

func newInOrder(want int) *inOrder { return &inOrder{complete: make(chan struct{}), want: want} }

// take is the callback.
func (r *inOrder) take(_ context.Context, ev callbacks.Event) {
	if ev.Err != nil && r.err == nil {
		r.err = ev.Err
	}
	if ev.Path != item(r.next) {
		r.outOfOrder++
	}
	if r.next++; r.next == r.want {
		close(r.complete)
	}
}
