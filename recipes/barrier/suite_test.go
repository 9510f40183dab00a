package barrier_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/retry"
)

const barrierPath = "/barriers/b"

// scene is a barrier with members of ours, and what others do to its nodes, which the test does by hand.
type scene struct {
	testing.TB
	ctx    context.Context
	raw    *zk.Conn
	chroot string
}

func newScene(tb testing.TB) *scene {
	tb.Helper()
	s := &scene{TB: tb, ctx: testenv.Context(tb), chroot: testenv.Chroot(tb)}
	s.raw = testenv.Raw(tb)
	return s
}

// newBarrier returns a scene with the node of the barrier.
func newBarrier(tb testing.TB) *scene {
	tb.Helper()
	s := newScene(tb)
	for _, p := range []string{path.Dir(s.path("")), s.path("")} {
		_, err := s.raw.Create(p, nil, 0, zk.WorldACL(zk.PermAll))
		s.must(err)
	}
	return s
}

// newClient returns a client with a session that outlasts what happens to the connection, for as long as a test is not
// about that.
func (s *scene) newClient(addr string, opts ...framework.Option) *framework.Client {
	s.Helper()
	patient := framework.WithSessionTimeout(30 * time.Second)
	return testclient.Connect(s, addr+s.chroot, append([]framework.Option{patient}, opts...)...)
}

// client returns a client that nothing stands in the way of.
func (s *scene) client(opts ...framework.Option) *framework.Client {
	s.Helper()
	return s.newClient(testenv.Addr(s), opts...)
}

// proxied returns a client, and the faults that stand in its way.
func (s *scene) proxied(opts ...framework.Option) (*framework.Client, *curatortest.Faults) {
	s.Helper()
	proxy := curatortest.NewProxyT(s, testenv.Addr(s))
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s", curatortest.FormatTrace(proxy.Faults().Trace()))
		}
	})
	return s.newClient(proxy.Addr(), opts...), proxy.Faults()
}

// impatient are the options of a client whose operations soon fail without a connection.
var impatient = []framework.Option{
	framework.WithRetryPolicy(retry.NTimes(0, 0)), framework.WithConnectionTimeout(200 * time.Millisecond),
}

// outlast waits until operations of the client fail for want of a connection, twice.
func (s *scene) outlast(client *framework.Client) {
	s.Helper()
	for range 2 {
		if _, err := client.CheckExists().ForPath(s.ctx, barrierPath); !errors.Is(err, framework.ErrConnectionLoss) {
			s.Errorf("got %v", err)
		}
	}
}

// settle waits until the client has the answers to all that it has asked.
func (s *scene) settle(client *framework.Client) {
	s.Helper()
	_, err := client.CheckExists().ForPath(s.ctx, barrierPath)
	s.must(err)
}

// cut cuts the connection of a client, and waits until it has another.
func (s *scene) cut(client *framework.Client, faults *curatortest.Faults) {
	s.Helper()
	again := make(chan struct{}, 1)
	remove := client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		if state == framework.Reconnected {
			again <- struct{}{}
		}
	})
	defer remove()
	faults.CutAll()
	select {
	case <-again:
	case <-s.ctx.Done():
		s.Fatal("not connected again")
	}
}

// member returns a member with a node of that name.
func (s *scene) member(client *framework.Client, name string, members int) *barrier.DistributedDoubleBarrier {
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath, members)
	d.SetName(name)
	return d
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wantErr fails the test if err does not match want.
func (s *scene) wantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// path returns where a child of the barrier is, for raw.
func (s *scene) path(name string) string { return path.Join(s.chroot, barrierPath, name) }

// put makes the node of another member, or a ready. They belong to the session of raw.
func (s *scene) put(name string) {
	s.Helper()
	var flags int32
	if name != "ready" {
		flags = zk.FlagEphemeral
	}
	_, err := s.raw.Create(s.path(name), nil, flags, zk.WorldACL(zk.PermAll))
	if name == "ready" && errors.Is(err, zk.ErrNodeExists) {
		return // a member that has seen the others for a moment opens the barrier by itself
	}
	s.must(err)
}

// take deletes nodes.
func (s *scene) take(names ...string) {
	s.Helper()
	var deletes []any
	for _, name := range names {
		deletes = append(deletes, &zk.DeleteRequest{Path: s.path(name), Version: -1})
	}
	_, err := s.raw.Multi(deletes...) // at once, as a member makes its node anew
	s.must(err)
}

// children returns the names of all that is at the barrier, in order.
func (s *scene) children() []string {
	s.Helper()
	children, _, err := s.raw.Children(s.path(""))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Fatal(err)
	}
	slices.Sort(children)
	return children
}

// await waits until this, and nothing else, is at the barrier.
func (s *scene) await(names ...string) {
	s.Helper()
	slices.Sort(names)
	testenv.Eventually(s, func() bool { return slices.Equal(s.children(), names) },
		"at the barrier: "+strings.Join(names, ", "))
}

// watches returns what the server says about its watches on this scene.
func (s *scene) watches() (watched []string) {
	s.Helper()
	answer, err := testenv.Server(s).FourLetterWord(s.ctx, "wchp")
	s.must(err)
	for line := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), s.chroot+barrierPath); ok {
			watched = append(watched, strings.TrimPrefix(rest, "/"))
		}
	}
	return watched
}

// awaitWatch waits for a watch on a node of the barrier.
func (s *scene) awaitWatch(name string) {
	s.Helper()
	testenv.Eventually(s, func() bool { return slices.Contains(s.watches(), name) }, "a watch on "+name)
}

// awaitNewNode waits until the member b has a node of the session of its client, which is another than the old one.
func (s *scene) awaitNewNode(client *framework.Client, old int64) {
	s.Helper()
	testenv.Eventually(s, func() bool {
		_, stat, err := s.raw.Get(s.path("b"))
		return err == nil && stat.EphemeralOwner != old && stat.EphemeralOwner == client.SessionID()
	}, "a node of the new session")
}

// awaitNothing waits until all nodes and watches are gone.
func (s *scene) awaitNothing() {
	s.Helper()
	s.await()
	s.awaitNoWatch()
}

// awaitNoWatch waits until all watches are gone.
func (s *scene) awaitNoWatch() {
	s.Helper()
	testenv.Eventually(s, func() bool { return len(s.watches()) == 0 }, "no watch is left")
}

// later calls a method of a barrier and does not wait for it.
func (s *scene) later(method func(context.Context) error) *call { return s.laterWith(s.ctx, method) }

func (s *scene) laterWith(ctx context.Context, method func(context.Context) error) *call {
	c := &call{s: s, end: make(chan error, 1)}
	go func() { c.end <- method(ctx) }()
	return c
}

// call is a method that has been called.
type call struct {
	s   *scene
	end chan error
}

// err waits for the end of the call.
func (c *call) err() error {
	c.s.Helper()
	select {
	case err := <-c.end:
		return err
	case <-c.s.ctx.Done():
		c.s.Fatalf("it waits for ever; at the barrier: %v", c.s.children())
		return nil
	}
}

// returns waits until the call has returned without an error.
func (c *call) returns() {
	c.s.Helper()
	if err := c.err(); err != nil {
		c.s.Fatal(err)
	}
}

// fails waits until the call has returned that error.
func (c *call) fails(want error) {
	c.s.Helper()
	c.s.wantErr(c.err(), want)
}

// waits fails the test if the call has returned.
func (c *call) waits() {
	c.s.Helper()
	select {
	case err := <-c.end:
		c.s.Fatalf("it has not waited: %v", err)
	default:
	}
}

// within returns a context that ends soon.
func (s *scene) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	s.Cleanup(cancel)
	return ctx
}
