package curatortest_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// proxied starts a server and a proxy for it.
func proxied(tb testing.TB) *curatortest.Proxy {
	tb.Helper()
	p := curatortest.NewProxyT(tb, testenv.NewServer(tb).Addr())
	return p
}

// proxySession connects go-zookeeper through the proxy. It gets the address several times: with one only it
// waits a second before it connects again.
func proxySession(tb testing.TB, p *curatortest.Proxy) *session {
	tb.Helper()
	return newSession(tb, slices.Repeat([]string{p.Addr()}, 5)...)
}

func TestClientThroughProxy(t *testing.T) {
	p := proxied(t)
	c := proxySession(t, p)
	acl := zk.WorldACL(zk.PermAll)
	if _, err := c.Create("/a", nil, 0, acl); err != nil {
		t.Fatal(err)
	}
	_, _, watch, err := c.GetW("/a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Multi(
		&zk.CheckVersionRequest{Path: "/a", Version: 0},
		&zk.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 0},
	)
	if err != nil {
		t.Fatal(err)
	}
	if e := <-watch; e.Type != zk.EventNodeDataChanged {
		t.Errorf("event %v", e)
	}

	drop := p.Faults().Add(curatortest.Rule{
		Ops: []string{"notification"}, Path: "/a", Action: curatortest.DropReply, Count: 1,
	})
	if _, _, watch, err = c.GetW("/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set("/a", nil, -1); err != nil {
		t.Fatal(err)
	}
	wait(t, drop)
	select {
	case e := <-watch:
		t.Errorf("event %v was dropped, and came", e)
	case <-time.After(50 * time.Millisecond):
	}

	big := make([]byte, 900<<10)
	if _, err := c.Set("/a", big, -1); err != nil {
		t.Fatal(err)
	}
	if b, _, err := c.Get("/a"); err != nil || len(b) != len(big) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, _, err := c.Get("/none"); !errors.Is(err, zk.ErrNoNode) {
		t.Error(err)
	}
	last := p.Faults().Trace()[len(p.Faults().Trace())-1]
	if last.Op != "getData" || last.Path != "/none" || last.Code != -101 || last.SessionID != c.SessionID() {
		t.Errorf("last entry %+v", last)
	}
}

func TestClientIsRefused(t *testing.T) {
	p := proxied(t)
	c := proxySession(t, p)
	in := p.Faults().Add(curatortest.Rule{Path: "/refused", Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
	acl := zk.WorldACL(zk.PermAll)
	if _, err := c.Create("/refused", nil, 0, acl); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("create: %v", err)
	}
	if _, err := c.Multi(
		&zk.CreateRequest{Path: "/other", Acl: acl}, &zk.CreateRequest{Path: "/refused", Acl: acl},
	); err == nil {
		t.Error("multi: no error")
	}
	if _, _, _, err := c.GetW("/refused"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("get: %v", err)
	}
	if _, _, _, err := c.ChildrenW("/refused"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("children: %v", err)
	}
	in.Remove()
	c.wantExists(t, "/refused", false)
	c.wantExists(t, "/other", false)
	if in.Hits() != 4 {
		t.Errorf("%d hits", in.Hits())
	}
}

func TestClientSurvivesThousandCuts(t *testing.T) {
	p := proxied(t)
	c := proxySession(t, p)
	if _, err := c.Create("/n", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	id := c.SessionID()
	done := int32(0) // the node's version
	for i := range 1000 {
		action := curatortest.CutAfter
		if i%2 == 1 {
			action = curatortest.CutBefore
		}
		in := p.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Path: "/n", Action: action, Count: 1})
		if _, err := c.Set("/n", nil, -1); err == nil {
			t.Fatalf("cycle %d: no error", i)
		}
		wait(t, in)
		in.Remove()
		if action == curatortest.CutAfter {
			done++
		}
		var stat *zk.Stat
		eventually(t, "the client is back", func() (ok bool) {
			var err error
			_, stat, err = c.Get("/n")
			return err == nil
		})
		if stat.Version != done {
			t.Fatalf("cycle %d: version %d, want %d", i, stat.Version, done)
		}
	}
	if c.SessionID() != id {
		t.Error("another session")
	}
	eventually(t, "one connection is left", func() bool { return p.Faults().Connections() == 1 })
}

func TestClientComesBack(t *testing.T) {
	p := proxied(t)
	c := proxySession(t, p)
	faults := map[string]func() func(){
		"black hole": func() func() { return p.Faults().BlackHole(curatortest.Both) },
		"refusal":    func() func() { restore := p.Faults().RefuseConnects(); p.Faults().CutAll(); return restore },
		"freeze":     func() func() { return p.Faults().Freeze() },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			restore := fault()
			result := make(chan error, 1)
			go func() {
				_, _, err := c.Get("/")
				result <- err
			}()
			select {
			case err := <-result:
				if name != "refusal" {
					t.Errorf("answered: %v", err)
				}
				result <- err
			case <-time.After(50 * time.Millisecond):
			}
			restore()
			<-result
			eventually(t, "the client is back", func() bool {
				_, _, err := c.Get("/")
				return err == nil
			})
		})
	}
}

// BenchmarkProxy measures one request at a time and many in flight, to the server and through the proxy.
func BenchmarkProxy(b *testing.B) {
	server := testenv.NewServer(b)
	p := curatortest.NewProxyT(b, server.Addr())
	for _, way := range []struct{ name, addr string }{{"direct", server.Addr()}, {"proxy", p.Addr()}} {
		c := newSession(b, way.addr)
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/clients=%d", way.name, n), func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if _, _, err := c.Exists("/"); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
