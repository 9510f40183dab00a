package main

import (
	"context"
	"time"
)

// window is the items on their way, at most as many as it is wide.
type window struct {
	load  load
	seats chan struct{}
}

func newWindow(l load) *window { return &window{l, make(chan struct{}, l.Window)} }

// keep puts a batch whenever there is room for one. When the time is up, it waits for the last item.
func (w *window) keep(ctx context.Context, put func() error) error {
	for end, over := time.Now().Add(w.load.duration()), false; !over; over = time.Now().After(end) {
		if err := w.enter(ctx, w.load.Batch); err != nil {
			return err
		}
		if err := put(); err != nil {
			return err
		}
	}
	return w.enter(ctx, cap(w.seats))
}

func (w *window) enter(ctx context.Context, items int) error {
	for range items {
		select {
		case w.seats <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *window) leave(items int) {
	for range items {
		<-w.seats
	}
}
