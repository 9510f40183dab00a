package framework_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// forgetful is a connection to a server that takes over no session: it grants another one, without saying that the old
// one has ended. ClickHouse Keeper does so.
type forgetful struct {
	net.Conn
	greeting []byte // the connect request, until it is complete
	isOver   bool
}

func (f *forgetful) Write(p []byte) (int, error) {
	if f.isOver {
		return f.Conn.Write(p)
	}
	f.greeting = append(f.greeting, p...)
	const id, end = 4 + 4 + 8 + 4, 4 + 4 + 8 + 4 + 8 // behind the length, the version, the zxid and the timeout
	if len(f.greeting) < end {
		return len(p), nil
	}
	clear(f.greeting[id:end])
	f.isOver = true
	_, err := f.Conn.Write(f.greeting)
	return len(p), err
}

// The old session and its nodes stay on the server until its timeout, but no client keeps it alive.
func TestSessionReplacedByServerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		var log bytes.Buffer // the state publisher alone writes it, until the client is closed
		client, recorded := connectRecorded(t, server.Addr(),
			framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := server.DialContext(ctx, network, address)
				return &forgetful{Conn: conn}, err
			}))
		ctx := t.Context()
		if _, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/n", nil); err != nil {
			t.Fatal(err)
		}
		before := client.Session()
		for range 2 {
			old := client.SessionID()
			if err := server.DropConnection(old); err != nil {
				t.Fatal(err)
			}
			recorded.want(t, suspended, lost, reconnected)
			if client.SessionID() == old {
				t.Error("the session is the old one")
			}
		}
		if err := context.Cause(before.Context()); !errors.Is(err, framework.ErrSessionLost) {
			t.Errorf("the context of the old session ends with %v", err)
		}
		if !server.Exists("/n") {
			t.Error("the node has not waited for the timeout of its session")
		}
		pass(t, 2*client.SessionTimeout())
		if server.Exists("/n") {
			t.Error("the node of the old session stays")
		}
		recorded.end(t, client)
		if n := strings.Count(log.String(), "the server has granted another session"); n != 2 {
			t.Errorf("%d reasons in %s", n, log.String())
		}
	})
}
