package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/examples/waiting"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// stage is where the steps play: a server, and a part of its tree of this run's own.
type stage struct {
	server *server
	out    *report
	root   string
	keeper *framework.Client // sees the whole tree
}

// openStage makes a node for this run.
func openStage(ctx context.Context, srv *server, out *report) (*stage, error) {
	keeper, err := connect(srv.connect)
	if err != nil {
		return nil, err
	}
	if err := waiting.ForServer(ctx, keeper, srv.connect, out.say); err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	root, err := keeper.Create().
		CreatingParentsIfNeeded().
		WithMode(builders.PersistentSequential).
		ForPath(ctx, "/tour/run-", nil)
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	return &stage{server: srv, out: out, root: root, keeper: keeper}, nil
}

// client returns a new client, with a session of its own. Its namespace is the node of this run: the steps need not
// know it.
func (s *stage) client() (*framework.Client, error) {
	return connect(s.server.connect, framework.WithNamespace(strings.TrimPrefix(s.root, "/")))
}

// connect starts a client. It does not wait for the connection: the first operation does.
func connect(connect string, opts ...framework.Option) (*framework.Client, error) {
	client, err := framework.New(connect, append(opts,
		framework.WithSessionTimeout(10*time.Second),
		framework.WithConnectionTimeout(5*time.Second),
		framework.WithRetryPolicy(retry.ExponentialBackoff(100*time.Millisecond, 3)))...)
	if err != nil {
		return nil, err
	}
	return client, client.Start()
}

// cleanUpTime bounds the cleaning up, which is done also when the program is interrupted.
const cleanUpTime = 20 * time.Second

// close removes the node of this run with all that the steps have left in it.
func (s *stage) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	err := s.keeper.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(ctx, s.root)
	return errors.Join(err, s.keeper.Close())
}
