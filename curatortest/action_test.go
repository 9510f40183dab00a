package curatortest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

func wantServer(t *testing.T, s *scripted, want ...string) {
	t.Helper()
	eventually(t, "the server gets as much", func() bool { return len(s.paths()) >= len(want) })
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("server got %q, want %q", got, want)
	}
}

func TestPassesPipelinedFrames(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			c := connectRaw(t, p)
			const n = 20_000
			go func() { // the buffers of the sockets do not hold that much
				paths := make([]string, 100)
				for i := range paths {
					paths[i] = "/some/path"
				}
				for range n / len(paths) {
					c.send(paths...)
				}
			}()
			for i, xid := range c.xids(n) {
				if xid != int32(i+1) {
					t.Fatalf("reply %d has xid %d", i+1, xid)
				}
			}
			if got := len(s.paths()); got != n {
				t.Errorf("server got %d", got)
			}
		})
	}
}

func TestCutIsCountedWhenTheClientSeesIt(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/c", Action: curatortest.CutBefore})
			for n := range 300 {
				c := connectRaw(t, p)
				c.send("/c")
				c.wantEnd()
				if hits := in.Hits(); hits != n+1 {
					t.Fatalf("%d cuts, %d hits", n+1, hits)
				}
			}
		})
	}
}

func TestCutBefore(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/c", Action: curatortest.CutBefore})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/c", "/d")
			wait(t, in)
			c.wantEnd()
			eventually(t, "the server's side ends", func() bool { return s.open() == 0 })
			if got := s.paths(); slices.Contains(got, "/c") || slices.Contains(got, "/d") {
				t.Errorf("server got %q", got)
			}
			if in.Hits() != 1 || p.Connections() != 0 {
				t.Errorf("%d hits, %d connections", in.Hits(), p.Connections())
			}
		})
	}
}

func TestCutAfter(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/c", Action: curatortest.CutAfter})
			c := connectRaw(t, p)
			c.send("/a", "/event", "/c", "/d")
			c.wantXids(1, -1, 2)
			if rest := c.wantEnd(); len(rest) != 0 {
				t.Errorf("delivered %x", rest)
			}
			wait(t, in)
			wantServer(t, s, "/a", "/event", "/c")
			eventually(t, "the server's side ends", func() bool { return s.open() == 0 })
		})
	}
}

func TestCutAfterRemoved(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			hold := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.HoldReply})
			cut := p.Add(curatortest.Rule{Path: "/c", Action: curatortest.CutAfter, MayMiss: true})
			c := connectRaw(t, p)
			c.send("/a", "/c", "/d")
			wait(t, hold)
			wantServer(t, s, "/a", "/c")
			cut.Remove()
			wantServer(t, s, "/a", "/c", "/d")
			hold.Release()
			c.wantXids(1, 2, 3)
			if cut.Hits() != 0 {
				t.Errorf("%d hits", cut.Hits())
			}
			if err := cut.Wait(t.Context()); err == nil {
				t.Error("Wait for a removed injection succeeds")
			}
		})
	}
}

func TestTruncateReply(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.TruncateReply})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/d")
			c.wantXids(1)
			if rest := c.wantEnd(); len(rest) != 10 { // of 4 bytes length and 16 bytes header
				t.Errorf("delivered %x", rest)
			}
			wait(t, in)
			wantServer(t, s, "/a", "/b")
		})
	}
}

func TestHoldRequest(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.HoldRequest})
			c := connectRaw(t, p)
			other := connectRaw(t, p)
			c.send("/a", "/b", "/d", "/b")
			c.wantXids(1)
			wait(t, in)
			c.wantSilence()
			wantServer(t, s, "/a")
			other.send("/x")
			other.wantXids(1)
			in.Release()
			c.wantXids(2, 3, 4)
			if in.Hits() != 2 {
				t.Errorf("%d hits", in.Hits())
			}
		})
	}
}

func TestHoldReply(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.HoldReply, Count: 1})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/d")
			c.wantXids(1)
			wait(t, in)
			wantServer(t, s, "/a", "/b", "/d")
			c.wantSilence()
			in.Remove()
			c.wantXids(2, 3)
			c.send("/b")
			c.wantXids(4)
		})
	}
}

func TestHeldConnectionEnds(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
				t.Run(action.String(), func(t *testing.T) {
					s, p := set(t)
					in := p.Add(curatortest.Rule{Path: "/a", Action: action})
					c := connectRaw(t, p)
					c.send("/a")
					wait(t, in)
					if action == curatortest.HoldReply {
						c.conn.Close() // nothing keeps the proxy from seeing that
					} else {
						s.cutAll()
					}
					eventually(t, "the link ends", func() bool { return p.Connections() == 0 && s.open() == 0 })
				})
			}
		})
	}
}

func TestDelays(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			for _, action := range []curatortest.Action{curatortest.DelayRequest, curatortest.DelayReply} {
				t.Run(action.String(), func(t *testing.T) {
					_, p := set(t)
					in := p.Add(curatortest.Rule{Path: "/b", Action: action, Delay: 60 * time.Millisecond})
					c := connectRaw(t, p)
					start := time.Now()
					c.send("/a", "/b", "/d")
					c.wantXids(1, 2, 3)
					if d := time.Since(start); d < 60*time.Millisecond {
						t.Errorf("took %v", d)
					}
					wait(t, in)
					p.Add(curatortest.Rule{Path: "/none", Action: action}) // no time at all
					c.send("/none")
					c.wantXids(4)
				})
			}
		})
	}
}

func TestDropReply(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.DropReply})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/d")
			c.wantXids(1, 3)
			wait(t, in)
			wantServer(t, s, "/a", "/b", "/d")
		})
	}
}

func TestNotification(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			rule := func(a curatortest.Action) curatortest.Rule {
				return curatortest.Rule{Ops: []string{"notification"}, Path: "/event/*", Action: a}
			}
			t.Run("DropReply", func(t *testing.T) {
				_, p := set(t)
				in := p.Add(rule(curatortest.DropReply))
				c := connectRaw(t, p)
				c.send("/event", "/event/a")
				c.wantXids(-1, 1, 2)
				wait(t, in)
			})
			t.Run("HoldReply", func(t *testing.T) {
				_, p := set(t)
				in := p.Add(rule(curatortest.HoldReply))
				c := connectRaw(t, p)
				c.send("/a", "/event/a")
				c.wantXids(1)
				wait(t, in)
				c.wantSilence()
				in.Release()
				c.wantXids(-1, 2)
			})
			t.Run("CutAfter", func(t *testing.T) {
				_, p := set(t)
				p.Add(rule(curatortest.CutAfter))
				c := connectRaw(t, p)
				c.send("/a", "/event/a")
				c.wantXids(1)
				if rest := c.wantEnd(); len(rest) != 0 {
					t.Errorf("delivered %x", rest)
				}
			})
		})
	}
}

func TestDuplicateReply(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			in := p.Add(curatortest.Rule{
				Ops: []string{"notification"}, Path: "/event", Count: 1, Action: curatortest.DuplicateReply,
			})
			c := connectRaw(t, p)
			c.send("/event", "/event", "/event/a")
			c.wantXids(-1, -1, 1, -1, 2, -1, 3)
			if in.Hits() != 1 {
				t.Errorf("%d hits", in.Hits())
			}
		})
	}
}

func TestDuplicateReplyIsHeldAsOne(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			events := []string{"notification"}
			p.Add(curatortest.Rule{Ops: events, Action: curatortest.DuplicateReply})
			held := p.Add(curatortest.Rule{Ops: events, Action: curatortest.HoldReply})
			c := connectRaw(t, p)
			c.send("/event", "/a")
			wait(t, held)
			c.wantSilence()
			held.Release()
			c.wantXids(-1, -1, 1, 2)
		})
	}
}

func TestReplyError(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{
				Path: "/b", Count: 2, Action: curatortest.ReplyError, Err: fmt.Errorf("wrapped: %w", zk.ErrNoAuth),
			})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/c")
			c.sendRequests(jute.Request{Op: jute.OpMulti, Ops: []jute.Request{{Op: jute.OpDelete, Path: "/b"}}})
			c.send("/b")
			want := []jute.ReplyHeader{
				{Xid: 1, Zxid: 1},
				{Xid: 2, Zxid: 2, Code: jute.CodeNoAuth},
				{Xid: 3, Zxid: 3},
				{Xid: 4, Zxid: 4, Code: jute.CodeNoAuth},
				{Xid: 5, Zxid: 5},
			}
			for _, want := range want {
				frame, err := c.read(limit)
				must(t, err)
				h, body, err := jute.DecodeReplyHeader(frame)
				if h != want || len(body) != 0 || err != nil {
					t.Errorf("got %+v and %d bytes, %v; want %+v", h, len(body), err, want)
				}
			}
			wantServer(t, s, "/a", "/", "/c", "/", "/b")
			if in.Hits() != 2 {
				t.Errorf("%d hits", in.Hits())
			}
			var codes []int32
			for _, e := range p.Trace() {
				if e.Reply && e.Path == "/b" {
					codes = append(codes, e.Code)
				}
			}
			if !slices.Equal(codes, []int32{-102, -102, 0}) {
				t.Errorf("trace has codes %v", codes)
			}
		})
	}
}

func TestReplyErrorThenCut(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.ReplyErrorThenCut, Err: jute.ErrUnimplemented})
			c := connectRaw(t, p)
			c.send("/a", "/b", "/c")
			want := []jute.ReplyHeader{{Xid: 1, Zxid: 1}, {Xid: 2, Zxid: 2, Code: jute.CodeUnimplemented}}
			for _, want := range want {
				frame, err := c.read(limit)
				must(t, err)
				if h, _, err := jute.DecodeReplyHeader(frame); h != want || err != nil {
					t.Errorf("got %+v, %v; want %+v", h, err, want)
				}
			}
			if rest := c.wantEnd(); len(rest) != 0 {
				t.Errorf("delivered %x behind the error", rest)
			}
			wantServer(t, s, "/a", "/")
			if in.Hits() != 1 {
				t.Errorf("%d hits", in.Hits())
			}
		})
	}
}

// After the removal of the rule the request cannot be done any more, and must not have the client get the answer to
// another.
func TestReplyErrorIsNotUndone(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			refused := p.Add(curatortest.Rule{Action: curatortest.ReplyError, Err: jute.ErrQuotaExceeded})
			held := p.Add(curatortest.Rule{Action: curatortest.HoldReply})
			c := connectRaw(t, p)
			c.send("/a")
			wait(t, refused)
			wait(t, held)
			refused.Remove()
			held.Release()
			frame, err := c.read(limit)
			must(t, err)
			if h, _, _ := jute.DecodeReplyHeader(frame); h.Xid != 1 || h.Code != jute.CodeQuotaExceeded {
				t.Errorf("got %+v", h)
			}
		})
	}
}

func TestReplyErrorWithOthers(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			p.Add(curatortest.Rule{Path: "/a", Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
			p.Add(curatortest.Rule{Path: "/a", Action: curatortest.ReplyError, Err: zk.ErrNoNode}) // the last one counts
			cut := p.Add(curatortest.Rule{Path: "/a", Skip: 1, Action: curatortest.TruncateReply})
			c := connectRaw(t, p)
			c.send("/a", "/a")
			frame, err := c.read(limit)
			must(t, err)
			if h, _, _ := jute.DecodeReplyHeader(frame); h.Xid != 1 || h.Code != jute.CodeNoNode {
				t.Errorf("got %+v", h)
			}
			if rest := c.wantEnd(); len(rest) != 10 {
				t.Errorf("delivered %x", rest)
			}
			wait(t, cut)
			wantServer(t, s, "/", "/")
		})
	}
}

func TestConnectionsAreNumbered(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			first := connectRaw(t, p)
			dropped := p.Add(curatortest.Rule{Connection: 2, Action: curatortest.DropReply})
			p.Add(curatortest.Rule{Connection: 3, Ops: []string{"connect"}, Action: curatortest.CutBefore})
			second := connectRaw(t, p)
			third := dialRaw(t, p)
			third.hello()
			third.wantEnd()
			fourth := connectRaw(t, p)
			first.send("/a")
			first.wantXids(1)
			second.send("/a")
			wait(t, dropped)
			second.wantSilence()
			fourth.send("/a")
			fourth.wantXids(1)
			got := map[int64]int{}
			for _, e := range p.Trace() {
				got[e.Connection]++
			}
			if diff := cmp.Diff(map[int64]int{1: 4, 2: 4, 3: 1, 4: 4}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The same seed takes the same of the same matches; Skip and Count apply to those.
func TestChance(t *testing.T) {
	const n = 400
	paths := slices.Repeat([]string{"/a"}, n)
	dropped := func(t *testing.T, set way, rule curatortest.Rule) (xids []int32) {
		t.Helper()
		_, p := set(t)
		rule.Path, rule.Action, rule.MayMiss = "/a", curatortest.DropReply, true
		in := p.Add(rule)
		must(t, in.Err())
		c := connectRaw(t, p)
		c.send(paths...)
		c.send("/end")
		next := int32(1)
		for {
			xid := c.xids(1)[0]
			for ; next < xid; next++ {
				xids = append(xids, next)
			}
			if next++; xid == n+1 {
				break
			}
		}
		if in.Hits() != len(xids) {
			t.Errorf("%d hits, %d dropped", in.Hits(), len(xids))
		}
		return xids
	}
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			one := dropped(t, set, curatortest.Rule{Chance: 0.25, Seed: 1})
			if len(one) < n/4-30 || len(one) > n/4+30 {
				t.Errorf("%d of %d with a chance of 0.25", len(one), n)
			}
			if again := dropped(t, set, curatortest.Rule{Chance: 0.25, Seed: 1}); !slices.Equal(one, again) {
				t.Errorf("first %v, then %v", one, again)
			}
			if two := dropped(t, set, curatortest.Rule{Chance: 0.25, Seed: 2}); slices.Equal(one, two) {
				t.Error("two seeds, and the same faults")
			}
			part := dropped(t, set, curatortest.Rule{Chance: 0.25, Seed: 1, Skip: 3, Count: 5})
			if !slices.Equal(part, one[3:8]) {
				t.Errorf("skip 3 and count 5 of %v: %v", one, part)
			}
			if all := dropped(t, set, curatortest.Rule{Chance: 1, Seed: 1}); len(all) != n {
				t.Errorf("%d of %d with a chance of 1", len(all), n)
			}
			if none := dropped(t, set, curatortest.Rule{Chance: 1e-9, Seed: 1}); len(none) != 0 {
				t.Errorf("%d of %d with next to no chance", len(none), n)
			}
		})
	}
}

func TestConnectRules(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			rule := curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.DropReply, Count: 1}
			_, p := set(t)
			in := p.Add(rule)
			c := dialRaw(t, p)
			c.hello()
			wait(t, in)
			c.wantSilence()

			again := connectRaw(t, p)
			rule.SessionID, rule.Action = again.session, curatortest.CutBefore
			in = p.Add(rule)
			connectRaw(t, p) // another session
			c = dialRaw(t, p)
			c.session = again.session
			c.hello()
			c.wantEnd()
			wait(t, in)
		})
	}
}

func TestSkipCountAndSession(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c, other := connectRaw(t, p), connectRaw(t, p)
			in := p.Add(curatortest.Rule{
				Path: "/a", SessionID: c.session, Skip: 2, Count: 3, Action: curatortest.DropReply,
			})
			c.send("/a", "/b", "/a", "/a", "/a", "/a", "/a")
			other.send("/a", "/a", "/a")
			c.wantXids(1, 2, 3, 7)
			other.wantXids(1, 2, 3)
			if in.Hits() != 3 {
				t.Errorf("%d hits", in.Hits())
			}
		})
	}
}

func TestRulesCombine(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			held := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.HoldRequest})
			cut := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.CutBefore})
			c := connectRaw(t, p)
			c.send("/a")
			wait(t, held)
			if cut.Hits() != 0 {
				t.Error("acts before its turn")
			}
			held.Release()
			wait(t, cut)
			c.wantEnd()
		})
	}
}

func TestMatchesEveryKindOfRequest(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			data := []byte("x")
			tests := []struct {
				request jute.Request
				path    string // pattern
			}{
				{jute.Request{Op: jute.OpCreate2, Path: "/a/b", Data: data, ACL: zk.WorldACL(zk.PermAll)}, "/a/b"},
				{jute.Request{Op: jute.OpCreateTTL, Path: "/a/b"}, "/a/b"},
				{jute.Request{Op: jute.OpDelete, Path: "/a/b"}, "/a/b"},
				{jute.Request{Op: jute.OpAddWatch, Path: "/a/b", Flags: 1}, "/a/b"},
				{jute.Request{Op: jute.OpMulti, Ops: []jute.Request{
					{Op: jute.OpCheck, Path: "/z"}, {Op: jute.OpSetData, Path: "/a/b", Data: data},
				}}, "/a/*"},
				{jute.Request{Op: jute.OpMultiRead, Ops: []jute.Request{{Op: jute.OpGetData, Path: "/a/b"}}}, "/a/b"},
				{jute.Request{Op: jute.OpSync, Path: "/"}, "/"},
				{jute.Request{Op: jute.OpWhoAmI}, ""},
				{jute.Request{Op: jute.OpCloseSession}, ""},
				{jute.Request{Op: jute.OpPing}, ""},
			}
			for _, tt := range tests {
				t.Run(tt.request.Op.String(), func(t *testing.T) {
					_, p := set(t)
					in := p.Add(curatortest.Rule{
						Ops: []string{tt.request.Op.String()}, Path: tt.path, Action: curatortest.DropReply,
					})
					p.Add(curatortest.Rule{Path: "/other", Action: curatortest.CutBefore, MayMiss: true})
					c := connectRaw(t, p)
					c.sendRequests(tt.request, jute.Request{Op: jute.OpExists, Path: "/a/b"})
					c.wantXids(2)
					if in.Hits() != 1 {
						t.Errorf("%d hits", in.Hits())
					}
				})
			}
		})
	}
}

func TestSpecialXids(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c := connectRaw(t, p)
			auth := p.Add(curatortest.Rule{Ops: []string{"auth"}, Action: curatortest.DropReply, Skip: 1, Count: 1})
			arm := p.Add(curatortest.Rule{Ops: []string{"setWatches2"}, Path: "/w", Action: curatortest.HoldReply})
			send := func(xid int32, op jute.Op, body []byte) {
				b := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: xid, Op: op})
				c.conn.Write(frameOf(append(b, body...)))
			}
			a := jute.AppendAuth(nil, &jute.Auth{Scheme: "digest", Auth: []byte("u:p")})
			w := jute.AppendSetWatches2(nil, &jute.SetWatches{Data: []string{"/v"}, Persistent: []string{"/w"}})
			send(jute.XidAuth, jute.OpAuth, a)
			send(jute.XidAuth, jute.OpAuth, a)
			send(jute.XidPing, jute.OpPing, nil)
			send(jute.XidSetWatches, jute.OpSetWatches2, w)
			c.wantXids(-4, -2)
			wait(t, auth)
			wait(t, arm)
			arm.Release()
			c.wantXids(-8)

			old := p.Add(curatortest.Rule{Ops: []string{"setWatches"}, Path: "/c", Action: curatortest.DropReply})
			w = jute.AppendSetWatches(nil, &jute.SetWatches{Child: []string{"/c"}})
			send(jute.XidSetWatches, jute.OpSetWatches, w)
			wait(t, old)
		})
	}
}

func TestTrace(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c := connectRaw(t, p)
			p.Add(curatortest.Rule{Path: "/gone", Action: curatortest.CutAfter})
			c.sendRequests(
				jute.Request{Op: jute.OpMulti, Ops: []jute.Request{
					{Op: jute.OpDelete, Path: "/a"}, {Op: jute.OpCheck, Path: "/b"},
				}},
				jute.Request{Op: jute.OpPing},
			)
			c.wantXids(1, 2)
			c.send("/event")
			c.wantXids(-1, 3)
			c.send("/gone")
			c.wantEnd()
			id := c.session
			want := []curatortest.TraceEntry{
				{Connection: 1, Op: "connect"},
				{Connection: 1, SessionID: id, Op: "connect", Reply: true},
				{Connection: 1, SessionID: id, Xid: 1, Op: "multi", Path: "/a,/b"},
				{Connection: 1, SessionID: id, Xid: 1, Op: "multi", Path: "/a,/b", Reply: true, Zxid: 1},
				{Connection: 1, SessionID: id, Xid: 3, Op: "getData", Path: "/event"},
				{Connection: 1, SessionID: id, Xid: -1, Op: "notification", Path: "/event", Reply: true, Zxid: -1},
				{Connection: 1, SessionID: id, Xid: 3, Op: "getData", Path: "/event", Reply: true, Zxid: 3},
				{Connection: 1, SessionID: id, Xid: 4, Op: "getData", Path: "/gone"},
				{Connection: 1, SessionID: id, Xid: 4, Op: "getData", Path: "/gone", Reply: true, Zxid: 4},
			}
			if diff := cmp.Diff(want, p.Trace()); diff != "" {
				t.Error(diff)
			}
			p.ResetTrace()
			if got := p.Trace(); len(got) != 0 {
				t.Errorf("after reset: %v", got)
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			in := p.Add(curatortest.Rule{Action: curatortest.CutAfter, MayMiss: true})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := in.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			p.close()
			if err := in.Wait(t.Context()); err == nil {
				t.Error("Wait succeeds after Close")
			}
			late := p.Add(curatortest.Rule{Action: curatortest.CutAfter})
			if err := late.Wait(t.Context()); err == nil {
				t.Error("Wait succeeds for a rule added after Close")
			}
		})
	}
}
