package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

// failures is an error that cannot be compared.
type failures []error

func (f failures) Error() string { return fmt.Sprint([]error(f)) }

// provider is an ACLProvider and a CompressionProvider that calls fail for the path of one node.
type provider struct {
	bad   string
	fails atomic.Pointer[func(what string) error]
	calls atomic.Int32
}

func (p *provider) call(what, path string) error {
	if fail := p.fails.Load(); fail != nil && strings.HasSuffix(path, p.bad) {
		p.calls.Add(1)
		return (*fail)(what)
	}
	return nil
}

func (p *provider) DefaultACL() []zk.ACL { return nil }

func (p *provider) ACLForPath(path string) []zk.ACL {
	_ = p.call("ACL", path)
	return nil
}

func (p *provider) Compress(path string, data []byte) ([]byte, error) {
	return data, p.call("Compress", path)
}

func (p *provider) Decompress(path string, data []byte) ([]byte, error) {
	return data, p.call("Decompress", path)
}

// A provider that blocks, panics, ends its goroutine or returns any error for one node holds up that node alone. Each
// reason is reported once. When the provider works again, the node is there.
func TestPersistentNodeProviderFailsForOneNode(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"panics": func() error { panic("on purpose") },
		"panics with an error that cannot be compared": func() error { panic(failures{errors.New("a")}) },
		"returns an error that cannot be compared":     func() error { return failures{errors.New("a"), errors.New("b")} },
		"ends its goroutine":                           func() error { runtime.Goexit(); return nil },
		"blocks":                                       nil,
	} {
		for _, where := range []string{"ACL", "Compress", "Decompress"} {
			if where == "ACL" && strings.HasPrefix(name, "returns") { // it returns no error
				continue
			}
			for _, siblings := range []int{2, 12} {
				t.Run(fmt.Sprint(name, " in ", where, " ", siblings), func(t *testing.T) {
					p := &provider{bad: "/bad"}
					inOwnScene(t, func(s *scene) { s.providerFails(p, where, siblings, fail) },
						framework.WithACLProvider(p), framework.WithCompressionProvider(p), framework.WithCompression())
				})
			}
		}
	}
}

func (s *scene) providerFails(p *provider, where string, siblings int, fail func() error) {
	blocks, wantRefused := make(chan struct{}), 1
	if fail == nil {
		wantRefused = 0
		fail = func() error { <-blocks; return nil } //nolint:unparam // as a provider
	}
	fails := func(what string) error {
		if what != where {
			return nil
		}
		return fail()
	}
	if where == "Decompress" { // it is called for a node that exists
		_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, "/members/bad", []byte("x"))
		s.must(err)
	}
	p.fails.Store(&fails)
	bad := nodes.NewPersistentNode(s.client, "/members/bad", builders.Persistent, []byte("x"))
	events := s.events(bad)
	s.must(bad.Start())
	all := s.startAll(siblings)
	s.awaitCreated(all)
	<-time.After(3 * time.Minute)
	s.must(s.reader.Delete().ForPath(s.ctx, "/members/0000"))
	s.must(all[1].SetData(s.ctx, []byte("two")))
	synctest.Wait()
	if data, _ := s.get("/members/0001"); data != "two" {
		s.Errorf("a sibling has %q", data)
	}
	if _, stat := s.get("/members/0000"); stat == nil {
		s.Error("a sibling is not created again")
	}
	refused := 0
	for len(events) > 0 {
		if ev := <-events; ev.Type == nodes.Refused {
			refused++
		}
	}
	if p.calls.Load() == 0 || refused != wantRefused || (bad.Err() != nil) != (refused > 0) {
		s.Errorf("%d calls, %d events, want %d; error %v", p.calls.Load(), refused, wantRefused, bad.Err())
	}
	p.fails.Store(nil)
	close(blocks)
	s.must(bad.WaitForInitialCreate(s.ctx))
	s.must(bad.Close(s.ctx))
}

// A removal is the first write of a namespace: the nodes were there before. It needs no ACL, so a provider that blocks,
// panics or ends its goroutine for the namespace holds up nothing.
func TestPersistentNodeClosedInNamespaceWithoutACLIsRemoved(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){
		"blocks": nil, "panics": func() { panic("on purpose") }, "ends its goroutine": runtime.Goexit,
	} {
		for _, fenced := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", fenced ", fenced), func(t *testing.T) {
				p := &provider{bad: "/bad"}
				inOwnScene(t, func(s *scene) {
					for _, path := range []string{"/bad/a", "/bad/b", "/fence"} {
						_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, path, []byte("x"))
						s.must(err)
					}
					s.ephemeral("/members/0", "one")
					client := s.client.UsingNamespace("bad")
					if fenced {
						client = s.client.Fenced(s.ctx, errors.New("lost"), "/fence").UsingNamespace("bad")
					}
					a := nodes.NewPersistentNode(client, "/a", builders.Persistent, []byte("x"))
					b := nodes.NewPersistentNode(client, "/b", builders.Persistent, []byte("x"))
					s.start(a)
					s.start(b)
					blocks := make(chan struct{})
					fails := func(string) error { //nolint:unparam // as a provider
						if fail != nil {
							fail()
						}
						<-blocks
						return nil
					}
					p.fails.Store(&fails)
					for _, n := range []*nodes.PersistentNode{a, b} {
						ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
						s.must(n.Close(ctx))
						cancel()
					}
					s.must(s.reader.Delete().ForPath(s.ctx, "/members/0"))
					<-time.After(3 * time.Minute)
					if _, stat := s.get("/members/0"); stat == nil {
						s.Error("the node of another namespace is not created again")
					}
					for _, path := range []string{"/bad/a", "/bad/b"} {
						if _, stat := s.get(path); stat != nil {
							s.Errorf("%s is there", path)
						}
					}
					close(blocks)
				}, framework.WithACLProvider(p))
			})
		}
	}
}

// A node is closed while a provider decodes what was read of it, and does not return. A removal needs no data.
func TestPersistentNodeClosedWhileDecompressBlocksIsRemoved(t *testing.T) {
	t.Parallel()
	for _, siblings := range []int{1, 12} {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprint(siblings, " siblings, changes ", changes), func(t *testing.T) {
				p := &provider{bad: "/bad"}
				inOwnScene(t, func(s *scene) {
					all := s.startAll(siblings)
					s.awaitCreated(all)
					n := s.ephemeral("/members/bad", "x")
					synctest.Wait()
					blocks := make(chan struct{})
					fails := func(what string) error { //nolint:unparam // as a provider
						if what == "Decompress" {
							<-blocks
						}
						return nil
					}
					p.fails.Store(&fails)
					_, err := s.reader.SetData().ForPath(s.ctx, "/members/bad", []byte("y")) // so that it is read
					s.must(err)
					synctest.Wait()
					if p.calls.Load() == 0 {
						s.Error("the provider is not called")
					}
					if changes { // what was read is not what is there
						_, err := s.reader.SetData().ForPath(s.ctx, "/members/bad", []byte("z"))
						s.must(err)
						synctest.Wait()
					}
					ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
					defer cancel()
					s.must(n.Close(ctx))
					s.awaitNothing("/members/bad")
					p.fails.Store(nil)
					again := s.ephemeral("/members/bad", "again")
					close(blocks) // the answer of then says nothing about the node of now
					synctest.Wait()
					s.awaitOwned("/members/bad", "again")
					s.must(again.Close(s.ctx))
				}, framework.WithCompressionProvider(p), framework.WithCompression())
			})
		}
	}
}

// A persistent node is closed before anybody knows whether it is as desired: it is that of another program.
func TestPersistentNodeClosedBeforeItsFirstReadIsDecodedIsLeft(t *testing.T) {
	p := &provider{bad: "/bad"}
	inOwnScene(t, func(s *scene) {
		_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, "/members/bad", []byte("x"))
		s.must(err)
		blocks := make(chan struct{})
		fails := func(string) error { <-blocks; return nil } //nolint:unparam // as a provider
		p.fails.Store(&fails)
		n := nodes.NewPersistentNode(s.client, "/members/bad", builders.Persistent, []byte("y"))
		s.must(n.Start())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		defer cancel()
		s.must(n.Close(ctx))
		if data, _ := s.get("/members/bad"); data != "x" {
			s.Errorf("it has %q", data)
		}
		close(blocks)
	}, framework.WithCompressionProvider(p), framework.WithCompression())
}

// The create of a sequential node has no answer, so all that may be it is read, and the provider blocks for one. That
// holds up the node alone.
func TestPersistentNodeSearchedAmongNodesWhoseDecompressBlocksHoldsUpNoOther(t *testing.T) {
	p := &provider{bad: "/queue/m-0000000001"}
	inOwnScene(t, func(s *scene) {
		_, err := s.client.Create().CreatingParentsIfNeeded().WithMode(builders.EphemeralSequential).
			ForPath(s.ctx, "/queue/m-", []byte("x"))
		s.must(err)
		s.ephemeral("/members/0", "one")
		blocks := make(chan struct{})
		fails := func(what string) error { //nolint:unparam // as a provider
			if what == "Decompress" {
				<-blocks
			}
			return nil
		}
		p.fails.Store(&fails)
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Path: "/queue/**", Action: curatortest.CutAfter, Count: 1,
		})
		n := nodes.NewPersistentNode(s.client, "/queue/m-", builders.EphemeralSequential, []byte("y"))
		s.must(n.Start())
		<-time.After(time.Minute)
		if p.calls.Load() == 0 {
			s.Error("the provider is not called")
		}
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/0"))
		<-time.After(3 * time.Minute)
		if _, stat := s.get("/members/0"); stat == nil {
			s.Error("another node is not created again")
		}
		close(blocks)
		s.must(n.WaitForInitialCreate(s.ctx))
		if path := n.ActualPath(); path != "/queue/m-0000000001" {
			s.Errorf("it is %q", path)
		}
	}, framework.WithCompressionProvider(p), framework.WithCompression())
}
