package discovery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

const base = "/services"

type (
	services = discovery.ServiceDiscovery[string]
	order    = discovery.ServiceInstance[string]
)

// scene is a server, a client that registers instances, and another one that looks at them.
type scene struct {
	*testing.T
	ctx            context.Context
	place, other   testenv.Place
	chroot         string
	client, reader *framework.Client
}

// inScene runs a test in virtual time, on Apache ZooKeeper in real time. The way of the client has faults.
func inScene(t *testing.T, test func(s *scene)) {
	t.Helper()
	t.Parallel()
	play(t, test)
}

// play is inScene for a test that runs alone.
func play(t *testing.T, test func(s *scene)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		s := &scene{T: t, ctx: testenv.Context(t), place: one, other: two, chroot: chroot}
		s.reader = s.connect(two)
		s.client = s.connect(one)
		test(s)
	})
}

func (s *scene) connect(place testenv.Place) *framework.Client {
	s.Helper()
	return testclient.ConnectAt(s.T, place, s.chroot,
		framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)))
}

// discover returns a started discovery, which the end of the test closes.
func (s *scene) discover(client *framework.Client, opts ...discovery.Option) *services {
	s.Helper()
	d := discovery.New[string](client, base, opts...)
	s.must(d.Start())
	s.Cleanup(func() { _ = d.Close(context.WithoutCancel(s.ctx)) })
	return d
}

// orders returns an instance of the service "orders".
func orders(id, payload string) order {
	i := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
	i.ID, i.Payload = id, payload
	return i
}

func pathOf(i order) string { return zkpath.Join(base, i.Name, i.ID) }

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

// stat returns the Stat of a node, nil if there is none.
func (s *scene) stat(path string) *zk.Stat {
	s.Helper()
	stat, err := s.reader.CheckExists().ForPath(s.ctx, path)
	s.must(err)
	return stat
}

// awaitPayload waits until the servers have an instance with this payload, of the session of the client if it is
// dynamic.
func (s *scene) awaitPayload(want order) {
	s.Helper()
	d := s.discover(s.reader)
	testenv.Eventually(s, func() bool {
		got, err := d.Instance(s.ctx, want.Name, want.ID)
		if err != nil || got.Payload != want.Payload {
			return false
		}
		stat := s.stat(pathOf(want))
		return !want.Type.IsDynamic() || stat != nil && stat.EphemeralOwner == s.client.SessionID()
	}, pathOf(want)+" is there with "+want.Payload)
}

func (s *scene) awaitNothing(path string) {
	s.Helper()
	testenv.Eventually(s, func() bool { return s.stat(path) == nil }, path+" is gone")
}

// awaitState returns what waits for a state of the client that comes from now on.
func (s *scene) awaitState(want framework.ConnectionState) (wait func()) {
	s.Helper()
	return testclient.AwaitState(s.ctx, s, s.client, want)
}

// cut cuts the connection of the client and waits for the next one.
func (s *scene) cut() {
	s.Helper()
	reconnected := s.awaitState(framework.Reconnected)
	s.place.Faults().CutAll()
	reconnected()
}

// expire ends the session of the client on the servers and waits for the next one.
func (s *scene) expire() {
	s.Helper()
	reconnected := s.awaitState(framework.Reconnected)
	session := s.client.SessionID()
	if server, ok := s.place.(interface{ ExpireSession(id int64) error }); ok {
		s.must(server.ExpireSession(session))
	} else {
		s.must(testenv.Server(s).ExpireSession(session))
	}
	reconnected()
}

// reset gives up the session of the client, which lives on, on the servers, and waits for the next one.
func (s *scene) reset() {
	s.Helper()
	reconnected := s.awaitState(framework.Reconnected)
	s.must(s.client.Reset())
	reconnected()
}

// settle waits until what the client has begun is done: an answer to a later request is here.
func (s *scene) settle() {
	s.Helper()
	_, err := s.client.CheckExists().ForPath(s.ctx, "/")
	s.must(err)
}

// IDs returns the ids of instances.
func ids(instances []order) []string {
	var out []string
	for _, i := range instances {
		out = append(out, i.ID)
	}
	return out
}
