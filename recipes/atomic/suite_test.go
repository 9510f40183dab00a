package atomic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

const (
	counterPath  = "/counters/c"
	receiptsPath = "/counters/receipts"
)

// scene is a client whose requests may fail, and another that nothing stands in the way of.
type scene struct {
	testing.TB
	ctx    context.Context
	place  testenv.Place
	chroot string
	client *framework.Client
	other  *framework.Client
}

// inScene runs a test in virtual time.
func inScene(t *testing.T, test func(s *scene)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		s := &scene{TB: t, ctx: testenv.Context(t), place: one, chroot: chroot}
		s.client = s.connect(one)
		s.other = s.connect(two)
		test(s)
	})
}

// inMemory is inScene on servers in memory in every ring: for tests of the order of goroutines.
func inMemory(t *testing.T, test func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		servers := curatortest.NewClusterT(t, 2, curatortest.WithoutPort()).Servers()
		s := &scene{TB: t, ctx: t.Context(), place: servers[0]}
		s.client = s.connect(servers[0])
		s.other = s.connect(servers[1])
		test(s)
	})
}

func (s *scene) connect(place testenv.Place, opts ...framework.Option) *framework.Client {
	s.Helper()
	return testclient.Connect(s, place.Addr()+s.chroot,
		append([]framework.Option{framework.WithDialer(place.DialContext)}, opts...)...)
}

// patient is a policy that only a bug exhausts.
var patient = retry.NTimes(1000, time.Millisecond)

func (s *scene) long(opts ...atomic.Option) *atomic.DistributedAtomicLong {
	return atomic.NewDistributedAtomicLong(s.client, counterPath, patient, opts...)
}

func (s *scene) otherLong() *atomic.DistributedAtomicLong {
	return atomic.NewDistributedAtomicLong(s.other, counterPath, patient)
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) wantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// put makes another client write the node, or create it.
func (s *scene) put(data []byte) {
	s.Helper()
	_, err := s.other.Create().OrSetData().CreatingParentContainersIfNeeded().ForPath(s.ctx, counterPath, data)
	s.must(err)
}

func (s *scene) delete() {
	s.Helper()
	s.must(s.other.Delete().ForPath(s.ctx, counterPath))
}

// wantNode compares the data of the node.
func (s *scene) wantNode(want []byte) {
	s.Helper()
	s.must(s.other.Sync().ForPath(s.ctx, counterPath))
	data, err := s.other.GetData().ForPath(s.ctx, counterPath)
	s.must(err)
	if string(data) != string(want) {
		s.Errorf("the node has %x, want %x", data, want)
	}
}

func (s *scene) wantNumber(want int64) {
	s.Helper()
	s.wantNode(binary.BigEndian.AppendUint64(nil, uint64(want)))
}

// settle waits until the client has seen what the others have done.
func (s *scene) settle() {
	s.Helper()
	s.must(s.client.Sync().ForPath(s.ctx, counterPath))
}

// wantResult compares what a change returned, without its stats.
func wantResult[T comparable](s *scene, r atomic.Result[T], err error, want atomic.Result[T]) {
	s.Helper()
	if r.Stats = (atomic.Stats{}); err != nil || r != want {
		s.Errorf("got %+v, %v, want %+v", r, err, want)
	}
}

func applied(pre, post int64) atomic.Result[int64] {
	return atomic.Result[int64]{Succeeded: true, Pre: pre, Post: post}
}

// requests returns the requests to the counter since the last call, by name.
func (s *scene) requests() (names []string) {
	for _, entry := range s.place.Faults().Trace() {
		if !entry.Reply && entry.Op != "connect" && entry.Op != "ping" {
			names = append(names, entry.Op)
		}
	}
	s.place.Faults().ResetTrace()
	return names
}
