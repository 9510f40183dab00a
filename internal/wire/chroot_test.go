package wire_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

func openChrooted(t *testing.T, s *server) (*client, *peer) {
	t.Helper()
	cfg := dialTo(network{"a:1": s})
	cfg.Chroot = "/app/one"
	c := open(t, cfg)
	c.want(t, wire.Connected)
	return c, s.next(t)
}

func TestPathsAreBelowTheChroot(t *testing.T) {
	tests := []struct {
		name    string
		request *wire.Request
		sent    []string // paths
		answer  jute.Reply
		want    jute.Reply
	}{
		{
			"create", &wire.Request{Request: jute.Request{Op: jute.OpCreate, Path: "/n"}},
			[]string{"/app/one/n"},
			jute.Reply{Path: "/app/one/n"},
			jute.Reply{Path: "/n"},
		},
		{
			"create of the chroot itself", &wire.Request{Request: jute.Request{Op: jute.OpCreate, Path: "/"}},
			[]string{"/app/one"},
			jute.Reply{Path: "/app/one"},
			jute.Reply{Path: "/"},
		},
		{
			"sequential create at the root",
			&wire.Request{Request: jute.Request{Op: jute.OpCreate2, Path: "/", Flags: 2}},
			[]string{"/app/one/"}, // without the slash the number would be put behind the chroot's own name
			jute.Reply{Path: "/app/one/0000000001"},
			jute.Reply{Path: "/0000000001"},
		},
		{
			"sync", &wire.Request{Request: jute.Request{Op: jute.OpSync, Path: "/"}},
			[]string{"/app/one"},
			jute.Reply{Path: "/app/one"},
			jute.Reply{Path: "/"},
		},
		{
			"getChildren: names are no paths",
			&wire.Request{Request: jute.Request{Op: jute.OpGetChildren, Path: "/n"}},
			[]string{"/app/one/n"},
			jute.Reply{Children: []string{"app", "x"}},
			jute.Reply{Children: []string{"app", "x"}},
		},
		{
			"getEphemerals: whole paths", &wire.Request{Request: jute.Request{Op: jute.OpGetEphemerals, Path: "/n"}},
			[]string{"/app/one/n"},
			jute.Reply{Children: []string{"/app/one/n/x", "/app/one/n"}},
			jute.Reply{Children: []string{"/n/x", "/n"}},
		},
		{
			"multi",
			&wire.Request{Request: jute.Request{Op: jute.OpMulti, Ops: []jute.Request{
				{Op: jute.OpCreate, Path: "/n", Data: []byte{}, ACL: []zk.ACL{}},
				{Op: jute.OpCheck, Path: "/"},
				{Op: jute.OpDelete, Path: "/m"},
			}}},
			[]string{"/app/one/n", "/app/one", "/app/one/m"},
			jute.Reply{Results: []jute.Result{
				{Op: jute.OpCreate, Path: "/app/one/n"}, {Op: jute.OpCheck}, {Op: jute.OpDelete},
			}},
			jute.Reply{Results: []jute.Result{
				{Op: jute.OpCreate, Path: "/n"}, {Op: jute.OpCheck}, {Op: jute.OpDelete},
			}},
		},
		{
			"absolute",
			&wire.Request{Request: jute.Request{Op: jute.OpSync, Path: "/zookeeper/config"}, Absolute: true},
			[]string{"/zookeeper/config"},
			jute.Reply{Path: "/zookeeper/config"},
			jute.Reply{Path: "/zookeeper/config"},
		},
		{
			"absolute, of a node below the chroot",
			&wire.Request{Request: jute.Request{Op: jute.OpSync, Path: "/app/one/n"}, Absolute: true},
			[]string{"/app/one/n"},
			jute.Reply{Path: "/app/one/n"},
			jute.Reply{Path: "/app/one/n"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				var sent recorder[string]
				s.serve = func(p *peer, r *request) bool {
					if r.Xid < wire.FirstXid {
						return false
					}
					req := r.decoded(t)
					for _, op := range req.Ops {
						sent.add(op.Path)
					}
					if len(req.Ops) == 0 {
						sent.add(req.Path)
					}
					p.reply(r, tt.answer)
					return true
				}
				c, _ := openChrooted(t, s)
				r := c.ask(t, tt.request)
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				if diff := cmp.Diff(tt.sent, sent.all()); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.want, r.Reply); diff != "" {
					t.Errorf("reply (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEventsAreBelowTheChroot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		seen := trace(s)
		c, p := openChrooted(t, s)
		root, node, below, config := newWatcher(), newWatcher(), newWatcher(), newWatcher()
		c.ask(t, watch(jute.OpGetChildren, "/", root, nil))
		c.ask(t, watch(jute.OpGetData, "/n", node, nil))
		c.ask(t, addWatch(wire.PersistentRecursive, "/", below, nil))
		c.ask(t, absolute(watch(jute.OpGetData, "/zookeeper/config", config, nil)))

		p.event(zk.EventNodeChildrenChanged, "/app/one")
		p.event(zk.EventNodeDataChanged, "/app/one/n")
		p.event(zk.EventNodeDataChanged, "/app/one2") // not watched
		p.event(zk.EventNodeDataChanged, "/zookeeper/config")
		for _, want := range []struct {
			name string
			w    watcher
			path string
		}{
			{"root", root, "/"}, {"node", node, "/n"}, {"below", below, "/n"}, {"config", config, "/zookeeper/config"},
		} {
			if ev := receive(t, want.w); ev.Path != want.path {
				t.Errorf("%s gets %s, want %s", want.name, ev.Path, want.path)
			}
			empty(t, want.w)
		}

		before := len(seen.all())
		p.cut()
		c.await(t, wire.Connected)
		synctest.Wait()
		got := seen.all()[before:]
		if len(got) != 1 || got[0] != "setWatches2 4 [] [] [] [] [/app/one] <nil>\n" {
			t.Errorf("set again: %q", got)
		}
	})
}

func TestFailedMultiFailsWithTheCodeOfTheOperation(t *testing.T) {
	failed := func(codes ...jute.Code) jute.Reply {
		var r jute.Reply
		for _, code := range codes {
			r.Results = append(r.Results, jute.Result{Op: jute.OpError, Code: code})
		}
		return r
	}
	const ok, after = jute.CodeOK, jute.CodeRuntimeInconsistency
	tests := []struct {
		name   string
		answer jute.Reply
		want   error
	}{
		{"the first", failed(jute.CodeNoNode, after), zk.ErrNoNode},
		{"the second", failed(ok, jute.CodeBadVersion, after), zk.ErrBadVersion},
		{"the last", failed(ok, ok, jute.CodeNodeExists), zk.ErrNodeExists},
		{"a code without a name", failed(ok, jute.Code(-999)), jute.UnknownCode(-999)},
		{"none", jute.Reply{Results: []jute.Result{{Op: jute.OpCheck}}}, nil},
		{"empty", jute.Reply{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(p *peer, r *request) bool {
					if r.Op == jute.OpMulti {
						p.reply(r, tt.answer)
					}
					return r.Op == jute.OpMulti
				}
				c, _ := connectPiped(t, s)
				ops := make([]jute.Request, len(tt.answer.Results))
				for i := range ops {
					ops[i] = jute.Request{Op: jute.OpCheck, Path: "/n"}
				}
				r := c.ask(t, &wire.Request{Request: jute.Request{Op: jute.OpMulti, Ops: ops}})
				if r.Err != tt.want {
					t.Errorf("got %v, want %v", r.Err, tt.want)
				}
				if len(r.Reply.Results) != len(tt.answer.Results) {
					t.Errorf("%d results, want %d", len(r.Reply.Results), len(tt.answer.Results))
				}
			})
		})
	}
}

func TestRequestMayBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var n int
		s.serve = func(p *peer, r *request) bool {
			if n++; n == 1 {
				p.no(r, jute.CodeNoNode)
			}
			return n == 1
		}
		c, _ := connectPiped(t, s)
		r := get("/a", nil)
		if c.ask(t, r); r.Err != zk.ErrNoNode {
			t.Errorf("got %v", r.Err)
		}
		if c.ask(t, r); r.Err != nil || r.Zxid != 2 || r.Path != "/a" {
			t.Errorf("got %v, zxid %d, path %s", r.Err, r.Zxid, r.Path)
		}
	})
}
