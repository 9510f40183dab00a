package curatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// Node returns a znode, and false if there is none. It reads data, children and ACL one after the other, in a session
// of its own that has all permissions.
func (s *RealServer) Node(ctx context.Context, path string) (Node, bool, error) {
	n, err := s.viewer.node(ctx, s, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Node{}, false, nil
	case err != nil:
		return Node{}, false, fmt.Errorf("curatortest: read %s: %w", path, err)
	}
	return n, true, nil
}

// viewer reads nodes on a connection that it keeps.
type viewer struct {
	mu   sync.Mutex
	conn *sessionConn // nil before the first read and after an error
}

// node reads a node. The server may have ended the connection of an earlier read, and its session: then it reads on a
// new one.
func (v *viewer) node(ctx context.Context, s *RealServer, path string) (Node, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn != nil {
		n, err := v.read(ctx, path)
		if err == nil || errors.Is(err, zk.ErrNoNode) || ctx.Err() != nil {
			return n, err
		}
	}
	if err := v.connect(ctx, s); err != nil {
		return Node{}, err
	}
	return v.read(ctx, path)
}

func (v *viewer) connect(ctx context.Context, s *RealServer) error {
	conn, err := dialSession(ctx, s.Addr())
	if err != nil {
		return err
	}
	if err = conn.handshake(0, make([]byte, jute.PasswordSize)); err == nil {
		err = conn.identify(ctx, s.account())
	}
	if err != nil || !conn.stop() { // from now on the connection outlives ctx
		conn.close()
		return errors.Join(err, ctx.Err())
	}
	v.conn = conn
	return nil
}

// read reads a node. The connection ends with an error, unless that is of the node.
func (v *viewer) read(ctx context.Context, path string) (n Node, err error) {
	conn := v.conn
	conn.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if !conn.stop() || err != nil && !errors.Is(err, zk.ErrNoNode) {
			v.conn = nil
			conn.close()
			err = errors.Join(err, ctx.Err())
		}
	}()
	data, err := conn.request(&jute.Request{Op: jute.OpGetData, Path: path})
	if err != nil {
		return Node{}, err
	}
	children, err := conn.request(&jute.Request{Op: jute.OpGetChildren, Path: path})
	if err != nil {
		return Node{}, err
	}
	acl, err := conn.request(&jute.Request{Op: jute.OpGetACL, Path: path})
	if err != nil {
		return Node{}, err
	}
	slices.Sort(children.Children)
	return Node{Data: data.Data, Stat: data.Stat, Children: children.Children, ACL: acl.ACL}, nil
}

func (v *viewer) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn != nil {
		v.conn.close()
		v.conn = nil
	}
}
