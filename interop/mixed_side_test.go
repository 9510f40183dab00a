package interop_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
)

// side is a client of Go or of Java.
type side interface {
	String() string
	contend(lockKind) *contender
	stand(electionKind, string) (*candidate, error)
	session() (int64, error)
	look(context.Context) error // at the server, once
	revoke(ctx context.Context, path string) error
}

// golang is a client of Go.
type golang struct{ *framework.Client }

func (golang) String() string { return "Go" }

func (g golang) contend(k lockKind) *contender { return k.ours(g.Client) }

func (g golang) stand(k electionKind, id string) (*candidate, error) { return k.ours(g, id) }

func (g golang) session() (int64, error) { return g.SessionID(), nil }

func (g golang) look(ctx context.Context) error {
	_, err := g.CheckExists().ForPath(ctx, meetingPath)
	return err
}

func (g golang) revoke(ctx context.Context, path string) error {
	return locks.Revoke(ctx, g.Client, path)
}

func (*java) String() string { return "Java" }

func (j *java) contend(k lockKind) *contender { return k.theirs(j) }

func (j *java) stand(k electionKind, id string) (*candidate, error) { return k.theirs(j, id) }

func (j *java) session() (id int64, err error) {
	err = j.Call(j.ctx, "sessionId", nil, &id)
	return id, err
}

func (j *java) look(ctx context.Context) error {
	return j.Call(ctx, "exists", interop.Args{"path": meetingPath}, nil)
}

func (j *java) revoke(ctx context.Context, path string) error {
	return j.Call(ctx, "revoke", interop.Args{"path": path}, nil)
}

var objects atomic.Int64

// newName gives a name for an object of Java that no other has.
func newName() string { return fmt.Sprint("object ", objects.Add(1)) }

// meetingPath is where the sides meet.
const meetingPath = "/meeting"

// meeting is a place in which clients of Go and Java share nodes.
type meeting struct {
	t     *testing.T
	ctx   context.Context
	raw   *zk.Conn
	root  string // of the place, for raw
	sides []side // of Go and Java in turn
}

// meet brings so many clients of Go together with as many of Java, each of Java in a process of its own.
func meet(t *testing.T, each int) *meeting {
	t.Helper()
	connect := testenv.ConnectString(t)
	_, chroot, _ := strings.Cut(connect, "/")
	m := &meeting{t: t, ctx: testenv.Context(t), raw: testenv.Raw(t), root: "/" + chroot}
	for range each {
		j := startJava(t)
		j.start("", connect)
		client := startGo(t, connect)
		if err := client.BlockUntilConnected(m.ctx); err != nil {
			t.Fatal(err)
		}
		m.sides = append(m.sides, golang{client}, j)
	}
	return m
}

// session gives the id of the session of a side.
func (m *meeting) session(s side) int64 {
	m.t.Helper()
	id, err := s.session()
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

// expire ends the session of a side, and waits until it has another.
func (m *meeting) expire(s side) {
	m.t.Helper()
	old := m.session(s)
	if err := testenv.Server(m.t).ExpireSession(old); err != nil {
		m.t.Fatal(err)
	}
	testenv.Eventually(m.t, func() bool {
		id, err := s.session()
		return err == nil && id != 0 && id != old
	}, "another session")
}

// node is a node below the place.
type node struct {
	path string
	data []byte
	stat *zk.Stat
	acl  []zk.ACL
}

// nodes gives the nodes below a path, each before those below it.
func (m *meeting) nodes(at string) (all []node) {
	m.t.Helper()
	children, _, err := m.raw.Children(path.Join(m.root, at))
	if err != nil && err != zk.ErrNoNode {
		m.t.Fatal(err)
	}
	slices.Sort(children)
	for _, child := range children {
		n := node{path: path.Join(at, child)}
		if n.data, n.stat, err = m.raw.Get(m.root + n.path); err == nil {
			n.acl, _, err = m.raw.GetACL(m.root + n.path)
		}
		if err == zk.ErrNoNode {
			continue // it went meanwhile
		}
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(append(all, n), m.nodes(n.path)...)
	}
	return all
}

// owned counts the nodes of a session.
func (m *meeting) owned(session int64) (n int) {
	m.t.Helper()
	for _, node := range m.nodes("/") {
		if node.stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

// awaitNothing waits until nobody has a node.
func (m *meeting) awaitNothing() {
	m.t.Helper()
	testenv.Eventually(m.t, func() bool {
		return !slices.ContainsFunc(m.nodes("/"), func(n node) bool { return n.stat.EphemeralOwner != 0 })
	}, "all have left")
}
