package main

import (
	"context"
	"encoding/json"

	"github.com/gocurator/curator/interop"
)

// javaContender is Java Curator.
type javaContender struct{ peer *interop.Peer }

// javaTarget is Java's name of its one server.
const javaTarget = "target"

func (j javaContender) connect(ctx context.Context, connect string) error {
	return j.peer.Call(ctx, "open", interop.Args{"target": javaTarget, "connect": connect}, nil)
}

func (j javaContender) leave(ctx context.Context) error {
	return j.peer.Call(ctx, "close", interop.Args{"target": javaTarget}, nil)
}

func (j javaContender) run(ctx context.Context, l load) (r result, err error) {
	args := interop.Args{}
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &args)
	}
	if err != nil {
		return r, err
	}
	args["target"] = javaTarget
	err = j.peer.Call(ctx, "run", args, &r)
	return r, err
}

func (j javaContender) close() error { return j.peer.Close() }
