package interop_test

import (
	"context"
	"errors"
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
)

// side is a client of Go or of Java. Contenders for locks and leadership run in a process of their own.
type side interface {
	String() string
	session(context.Context) (int64, error)
	look(context.Context) error // at the server, once
}

// golang is a client of Go in the process of the test.
type golang struct{ *framework.Client }

func (golang) String() string { return "Go" }

func (g golang) session(context.Context) (int64, error) { return g.SessionID(), nil }

func (g golang) look(ctx context.Context) error {
	_, err := g.CheckExists().ForPath(ctx, meetingPath)
	return err
}

func (j *peer) session(ctx context.Context) (id int64, err error) {
	err = j.Call(ctx, "sessionId", nil, &id)
	return id, err
}

func (j *peer) look(ctx context.Context) error {
	return j.Call(ctx, "exists", interop.Args{"path": meetingPath}, nil)
}

var objects atomic.Int64

// newName returns a name for an object of a process that no other has.
func newName() string { return fmt.Sprint("object ", objects.Add(1)) }

// meetingPath is where the sides meet.
const meetingPath = "/meeting"

// meeting is a place in which clients of Go and Java share nodes.
type meeting struct {
	t     *testing.T
	ctx   context.Context
	raw   *zk.Conn
	root  string  // of the place, for raw
	sides []side  // of Go and Java in turn
	peers []*peer // those of them that have a process of their own
}

// newMeeting returns a meeting at an empty path.
func newMeeting(t *testing.T) (m *meeting, connect string) {
	t.Helper()
	connect = testenv.ConnectString(t)
	_, chroot, _ := strings.Cut(connect, "/")
	return &meeting{t: t, ctx: testenv.Context(t), raw: testenv.Raw(t), root: "/" + chroot}, connect
}

// meet brings so many clients of Go together with as many of Java, each of Java in a process of its own.
func meet(t *testing.T, each int) *meeting {
	t.Helper()
	m, connect := newMeeting(t)
	for range each {
		client := startGo(t, connect)
		if err := client.BlockUntilConnected(m.ctx); err != nil {
			t.Fatal(err)
		}
		m.sides = append(m.sides, golang{client}, m.invite(javaPeer, connect))
	}
	m.showFailure()
	return m
}

// meetApart is meet with each of Go in a process of its own, too.
func meetApart(t *testing.T, each int) *meeting {
	t.Helper()
	m, connect := newMeeting(t)
	for range each {
		for _, in := range []language{golangPeer, javaPeer} {
			m.sides = append(m.sides, m.invite(in, connect))
		}
	}
	m.showFailure()
	return m
}

// showFailure ends a failed test with the nodes of all sides.
func (m *meeting) showFailure() {
	sessions := make(map[side]int64)
	for _, s := range m.sides {
		sessions[s] = m.session(s)
	}
	m.t.Cleanup(func() {
		if !m.t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit) // that of the test may be over
		defer cancel()
		for s, first := range sessions {
			now, err := s.session(ctx)
			m.t.Logf("%v: session %x, at first %x, error %v", s, now, first, err)
		}
		for _, n := range m.nodes("/") {
			m.t.Logf("%s of %x, created by %x, last changed by %x", n.path, n.stat.EphemeralOwner, n.stat.Czxid, n.stat.Mzxid)
		}
	})
}

// invite adds a side in a process of its own.
func (m *meeting) invite(in language, connect string) *peer {
	m.t.Helper()
	p := startPeer(m.t, in)
	p.start("", connect)
	m.peers = append(m.peers, p)
	return p
}

// session returns the id of the session of a side.
func (m *meeting) session(s side) int64 {
	m.t.Helper()
	id, err := s.session(m.ctx)
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
		id, err := s.session(m.ctx)
		return err == nil && id != 0 && id != old
	}, "another session")
}

// tryExpire ends the session of a side, and reports whether it had one.
func (m *meeting) tryExpire(s side) (bool, error) {
	id, err := s.session(m.ctx)
	if err != nil || id == 0 { // it is on its way to another
		return false, m.ctx.Err()
	}
	err = testenv.Server(m.t).ExpireSession(id)
	if errors.Is(err, zk.ErrSessionExpired) {
		return false, nil
	}
	return err == nil, err
}

// node is a node below the place.
type node struct {
	path string
	data []byte
	stat *zk.Stat
	acl  []zk.ACL
}

// nodes returns the nodes below a path, each before those below it.
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

// awaitNothing waits until all nodes are gone.
func (m *meeting) awaitNothing() {
	m.t.Helper()
	testenv.Eventually(m.t, func() bool {
		return !slices.ContainsFunc(m.nodes("/"), func(n node) bool { return n.stat.EphemeralOwner != 0 })
	}, "all have left")
}

// clear waits until all nodes are gone, and removes the containers, as the server does some time later.
func (m *meeting) clear() {
	m.t.Helper()
	m.awaitNothing()
	for _, n := range slices.Backward(m.nodes("/")) {
		if err := m.raw.Delete(m.root+n.path, -1); err != nil && err != zk.ErrNoNode {
			m.t.Fatal(err)
		}
	}
}
