package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gocurator/curator/curatortest"
)

// server is the ZooKeeper that the program works with.
type server struct {
	connect string // what clients connect to
	expire  func(ctx context.Context, sessionID int64) error
	close   func() error
}

// openServer takes the server that is given, or starts one.
func openServer(connect string, out *report) (*server, error) {
	if connect != "" {
		out.say("ZooKeeper: %s", connect)
		return &server{
			connect: connect,
			expire: func(ctx context.Context, sessionID int64) error {
				return curatortest.ExpireSession(ctx, firstServer(connect), sessionID)
			},
			close: func() error { return nil },
		}, nil
	}
	own, err := curatortest.NewServer()
	if err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	out.say("ZooKeeper: one in memory at %s, for this run; -connect host:port takes yours", own.Addr())
	return &server{
		connect: own.ConnectString(),
		expire:  func(_ context.Context, sessionID int64) error { return own.ExpireSession(sessionID) },
		close:   own.Close,
	}, nil
}

// firstServer returns the first server of a connect string, without the chroot.
func firstServer(connect string) string {
	servers, _, _ := strings.Cut(connect, "/")
	first, _, _ := strings.Cut(servers, ",")
	return first
}
