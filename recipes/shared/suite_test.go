package shared_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
)

const path = "/limits/jobs"

// scene is a client whose connection can fail, and one that writes.
type scene struct {
	testing.TB
	ctx    context.Context
	place  testenv.Place
	client *framework.Client
	writer *framework.Client
	chroot string
}

// inScene runs a test in virtual time.
func inScene(t *testing.T, test func(s *scene)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		s := &scene{TB: t, ctx: testenv.Context(t), place: one, chroot: chroot}
		s.client, s.writer = s.newClient(one), s.newClient(two)
		testclient.LogTrace(t, one)
		test(s)
	})
}

// patient is a policy that only a bug exhausts. A change waits for a connection once, at its beginning: behind a loss
// its next tries fail until the client is connected again.
var patient = retry.NTimes(1000, 10*time.Millisecond)

func (s *scene) newClient(place testenv.Place, opts ...framework.Option) *framework.Client {
	s.Helper()
	opts = append([]framework.Option{framework.WithRetryPolicy(patient)}, opts...)
	return testclient.ConnectAt(s, place, s.chroot, opts...)
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// write sets the node as another client.
func (s *scene) write(data string) {
	s.Helper()
	_, err := s.writer.Create().OrSetData().CreatingParentContainersIfNeeded().ForPath(s.ctx, path, []byte(data))
	s.must(err)
}

func (s *scene) remove() {
	s.Helper()
	s.must(s.writer.Delete().ForPath(s.ctx, path))
}

// stored returns what the server has.
func (s *scene) stored() (string, zk.Stat) {
	s.Helper()
	s.must(s.writer.Sync().ForPath(s.ctx, path))
	var stat zk.Stat
	data, err := s.writer.GetData().StoringStatIn(&stat).ForPath(s.ctx, path)
	s.must(err)
	return string(data), stat
}

// cutOff keeps the client from connecting until restore.
func (s *scene) cutOff() (restore func()) {
	s.Helper()
	suspended := s.awaitState(framework.Suspended)
	heal := s.place.Faults().RefuseConnects()
	s.place.Faults().CutAll()
	suspended()
	return heal
}

// awaitState returns what waits for a state that comes from now on.
func (s *scene) awaitState(state framework.ConnectionState) (wait func()) {
	s.Helper()
	return testclient.AwaitState(s.ctx, s, s.client, state)
}

// start starts a value.
func (s *scene) start(client *framework.Client, seed string, opts ...shared.Option) *shared.SharedValue {
	s.Helper()
	v := shared.NewSharedValue(client, path, []byte(seed), opts...)
	s.must(v.Start(s.ctx))
	s.Cleanup(func() { s.must(v.Close()) })
	return v
}

// await waits until the copy of a value is want.
func (s *scene) await(v *shared.SharedValue, want string) {
	s.Helper()
	for {
		changed := v.Changed()
		if string(v.Value()) == want {
			return
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			s.Fatalf("the value is %q, not %q; %v", v.Value(), want, v.Err())
		}
	}
}

// events returns what waits for the next value of a listener.
func (s *scene) events(v *shared.SharedValue) (next func() string) {
	values := make(chan string, 100)
	v.AddListener(func(_ context.Context, now shared.VersionedValue[[]byte]) { values <- string(now.Value) })
	return func() string {
		s.Helper()
		select {
		case value := <-values:
			return value
		case <-s.ctx.Done():
			s.Fatal("the listener is not called")
			return ""
		}
	}
}

func (s *scene) wantError(got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("the error is %v, not %v", got, want)
	}
}
