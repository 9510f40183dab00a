package discovery_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// What waits for a service ends with the client.
func TestCacheAndProviderEndWithTheirClient(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		d := s.discover(s.reader)
		c, p := d.Cache("orders"), d.Provider("orders")
		none, filtered := d.Provider("none"), d.Provider("orders",
			discovery.WithFilter(func(order) bool { return false }))
		s.must(c.Start(s.ctx))
		for _, p := range []*discovery.ServiceProvider[string]{p, none, filtered} {
			s.must(p.Start(s.ctx))
		}
		var listening context.Context
		entered := make(chan struct{})
		c.AddListener(func(ctx context.Context, _ discovery.Change[string]) {
			listening = ctx
			close(entered)
			<-ctx.Done()
		})
		s.register(s.discover(s.client), "b")
		<-entered
		ends := make(chan error, 10)
		running := 0
		wait := func(fn func() error) {
			running++
			go func() { ends <- fn() }()
		}
		for _, p := range []*discovery.ServiceProvider[string]{none, filtered} {
			wait(func() error {
				_, err := p.Pick(s.ctx)
				return err
			})
		}
		wait(func() error {
			for range c.Changes(s.ctx) {
			}
			return framework.ErrClosed
		})
		restore := s.other.Faults().RefuseConnects()
		defer restore()
		suspended := make(chan struct{})
		s.reader.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
			if state == framework.Suspended {
				close(suspended)
			}
		})
		s.other.Faults().CutAll()
		<-suspended
		late := d.Cache("late")
		wait(func() error { return late.Start(s.ctx) })
		wait(func() error { return c.Sync(s.ctx) })
		s.must(s.reader.Close())
		for range running {
			s.wantErr(<-ends, framework.ErrClosed)
		}
		<-listening.Done()
		s.wantErr(context.Cause(listening), framework.ErrClosed)
		_, err := p.Instance()
		s.wantErr(err, framework.ErrClosed)
		_, err = p.Pick(s.ctx)
		s.wantErr(err, framework.ErrClosed)
		s.wantErr(c.Sync(s.ctx), framework.ErrClosed)
		if diff := cmp.Diff([]string{"a", "b"}, ids(c.Instances())); diff != "" {
			t.Errorf("the instances behind the end:\n%s", diff)
		}
		s.must(c.Close())
		if got := c.Instances(); len(got) > 0 {
			t.Errorf("the instances behind Close: %v", got)
		}
	})
}

// The end of the client does not stand in line behind the callbacks of the program.
func TestProviderEndsWithItsClientBehindACallbackThatBlocks(t *testing.T) {
	inScene(t, func(s *scene) {
		p := s.discover(s.reader).Provider("none")
		s.must(p.Start(s.ctx))
		entered, release, closed := make(chan struct{}), make(chan struct{}), make(chan error)
		s.must(s.reader.CheckExists().InBackground(func(context.Context, callbacks.Event) {
			close(entered)
			<-release
		}).ForPath(s.ctx, "/"))
		<-entered
		picked := make(chan error)
		go func() {
			_, err := p.Pick(s.ctx)
			picked <- err
		}()
		go func() { closed <- s.reader.Close() }()
		s.wantErr(<-picked, framework.ErrClosed)
		close(release)
		s.must(<-closed)
	})
}

// A wait for an instance names the reason of an outage.
func TestPickInAnOutageNamesItsReason(t *testing.T) {
	inScene(t, func(s *scene) {
		p := s.discover(s.client).Provider("none")
		s.must(p.Start(s.ctx))
		defer s.outage()()
		testenv.Eventually(s, func() bool {
			return errors.Is(s.client.BlockUntilConnected(s.ended()), syscall.ECONNREFUSED)
		}, "a connect is refused")
		_, err := p.Pick(s.ended())
		for _, want := range []error{context.Canceled, syscall.ECONNREFUSED, discovery.ErrNoInstance} {
			s.wantErr(err, want)
		}
	})
}

func TestStartOnAClosedClientIsAnError(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.reader)
		c, p := d.Cache("orders"), d.Provider("orders")
		fresh := discovery.New[string](s.reader, base)
		s.must(s.reader.Close())
		s.wantErr(fresh.Start(), framework.ErrClosed)
		s.wantErr(c.Start(s.ctx), framework.ErrClosed)
		s.wantErr(p.Start(s.ctx), framework.ErrClosed)
		s.wantErr(d.Register(s.ctx, orders("a", "")), framework.ErrClosed)
	})
}

// An instance that is unregistered is deleted, also by a Close that comes before its deletion and leaves those of its
// type.
func TestCloseDeletesAStaticInstanceThatIsUnregistered(t *testing.T) {
	inScene(t, func(s *scene) {
		d := discovery.New[string](s.client, base)
		s.must(d.Start())
		gone, stays := orders("gone", ""), orders("stays", "")
		gone.Type, stays.Type = discovery.Static, discovery.Static
		s.must(d.Register(s.ctx, gone))
		s.must(d.Register(s.ctx, stays))
		restore := s.outage()
		s.wantErr(d.Unregister(s.ended(), gone), context.Canceled)
		s.wantErr(d.Close(s.ended()), context.Canceled)
		restore()
		s.must(d.Close(s.ctx))
		if s.stat(pathOf(gone)) != nil || s.stat(pathOf(stays)) == nil {
			t.Error("the wrong one is left")
		}
	})
}

// The instances are known when Start and Sync return, whatever the listeners of the cache have got until then.
func TestCacheKnowsAllInstancesBehindStart(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		for n := range 100 {
			s.register(d, string(rune('a'+n/10))+string(rune('a'+n%10)))
		}
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		for range 20 {
			c := s.cacheOf()
			if n := len(c.Instances()); n != 100 {
				t.Fatalf("%d instances behind Start", n)
			}
			s.must(c.Close())
		}
		p := s.provider(discovery.WithFilter(func(order) bool { return true }))
		if n := len(p.AllInstances()); n != 100 {
			t.Errorf("%d instances behind the Start of a provider", n)
		}
	})
}
