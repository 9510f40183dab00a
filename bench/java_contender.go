package main

import (
	"context"

	"github.com/gocurator/curator/interop"
)

// javaContender is Java Curator.
type javaContender struct{ peer *interop.Peer }

// javaTarget is what we call the one server that Java works on.
const javaTarget = "target"

func (j javaContender) connect(ctx context.Context, connect string) error {
	return j.peer.Call(ctx, "open", interop.Args{"target": javaTarget, "connect": connect}, nil)
}

func (j javaContender) leave(ctx context.Context) error {
	return j.peer.Call(ctx, "close", interop.Args{"target": javaTarget}, nil)
}

func (j javaContender) run(ctx context.Context, l load) (r result, err error) {
	err = j.peer.Call(ctx, "run", interop.Args{
		"target": javaTarget, "case": l.Case, "seconds": l.Seconds, "threads": l.Threads,
		"window": l.Window, "payload": l.Payload, "waiters": l.Waiters,
	}, &r)
	return r, err
}

func (j javaContender) close() error { return j.peer.Close() }
