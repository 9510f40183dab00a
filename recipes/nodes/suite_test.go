package nodes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/retry"
)

const keptPath = "/members/a"

// scene is a server, a client that keeps nodes, and another one that looks at them.
type scene struct {
	*testing.T
	ctx            context.Context
	place          testenv.Place
	chroot         string
	client, reader *framework.Client
}

// inScene runs a test in virtual time, on Apache ZooKeeper in real time. The way of the client has faults.
func inScene(t *testing.T, test func(s *scene), opts ...framework.Option) {
	t.Helper()
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		s := &scene{T: t, ctx: testenv.Context(t), place: one, chroot: chroot}
		s.reader = connect(t, two, chroot)
		s.client = connect(t, one, chroot, opts...)
		test(s)
	})
}

func connect(t *testing.T, place testenv.Place, chroot string, opts ...framework.Option) *framework.Client {
	t.Helper()
	return testclient.Connect(t, place.Addr()+chroot, append([]framework.Option{
		framework.WithDialer(place.DialContext), framework.WithSessionTimeout(testenv.SessionTimeout),
		framework.WithRetryPolicy(retry.Forever(10 * time.Millisecond)),
	}, opts...)...)
}

func (s *scene) must(err error) {
	s.Helper()
	testclient.Must(s.T, err)
}

func (s *scene) wantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// start starts a node and waits until it is there.
func (s *scene) start(n *nodes.PersistentNode) {
	s.Helper()
	s.must(n.Start())
	s.must(n.WaitForInitialCreate(s.ctx))
}

// ephemeral returns a started ephemeral node.
func (s *scene) ephemeral(path, data string, opts ...nodes.NodeOption) *nodes.PersistentNode {
	s.Helper()
	n := nodes.NewPersistentNode(s.client, path, builders.Ephemeral, []byte(data), opts...)
	s.start(n)
	return n
}

// get returns the data and the Stat of a node, nil if there is none.
func (s *scene) get(path string) (string, *zk.Stat) {
	s.Helper()
	var stat zk.Stat
	data, err := s.reader.GetData().StoringStatIn(&stat).ForPath(s.ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	s.must(err)
	return string(data), &stat
}

// awaitOwned waits until the node belongs to the session of the client and has that data.
func (s *scene) awaitOwned(path, data string) {
	s.Helper()
	testenv.Eventually(s, func() bool {
		got, stat := s.get(path)
		session := s.client.SessionID()
		return stat != nil && got == data && stat.EphemeralOwner == session
	}, path+" belongs to the session of its client")
}

// awaitNothing waits until there is no node.
func (s *scene) awaitNothing(path string) {
	s.Helper()
	testenv.Eventually(s, func() bool {
		_, stat := s.get(path)
		return stat == nil
	}, path+" is gone")
}

// events collects the events of a node.
func (s *scene) events(n *nodes.PersistentNode) <-chan nodes.Event {
	events := make(chan nodes.Event, 1000)
	n.AddListener(func(_ context.Context, ev nodes.Event) { events <- ev })
	return events
}

// next returns the next event.
func (s *scene) next(events <-chan nodes.Event, want nodes.EventType) nodes.Event {
	s.Helper()
	select {
	case ev := <-events:
		if ev.Type != want {
			s.Fatalf("event %v, %v; want %v", ev.Type, ev.Err, want)
		}
		return ev
	case <-s.ctx.Done():
		s.Fatalf("no event %v", want)
		return nodes.Event{}
	}
}

// expire ends a session on the servers.
func (s *scene) expire(session int64) {
	s.Helper()
	if server, ok := s.place.(interface{ ExpireSession(id int64) error }); ok {
		s.must(server.ExpireSession(session))
		return
	}
	s.must(testenv.Server(s).ExpireSession(session))
}

// reset gives the session of the client up, which lives on, on the servers, and waits for the next one.
func (s *scene) reset() (before int64) {
	s.Helper()
	before = s.client.SessionID()
	s.must(s.client.Reset())
	testenv.Eventually(s, func() bool {
		return s.client.SessionID() != before && s.client.IsConnected()
	}, "a new session")
	return before
}
