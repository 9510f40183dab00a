package curatortest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
)

func TestFreeze(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			c := connectRaw(t, p)
			thaw := p.Freeze()
			twice := p.Freeze()
			c.send("/a", "/event")
			other := dialRaw(t, p)
			other.hello()
			c.wantSilence()
			other.wantSilence()
			if got := s.paths(); len(got) != 0 {
				t.Errorf("server got %q", got)
			}
			thaw()
			thaw()
			c.wantSilence()
			twice()
			c.wantXids(1, -1, 2)
			if _, err := other.read(5 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFreezeHidesTheEnd(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			c := connectRaw(t, p)
			thaw := p.Freeze()
			s.cutAll()
			c.wantSilence()
			thaw()
			c.wantEnd()
		})
	}
}

func TestReleasedWhileFrozen(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			in := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.HoldRequest})
			c := connectRaw(t, p)
			c.send("/a")
			wait(t, in)
			thaw := p.Freeze()
			in.Release()
			c.wantSilence()
			if got := s.paths(); len(got) != 0 {
				t.Errorf("server got %q", got)
			}
			thaw()
			c.wantXids(1)
		})
	}
}

func TestBlackHole(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			for _, d := range []curatortest.Direction{curatortest.ToServer, curatortest.ToClient, curatortest.Both} {
				t.Run(d.String(), func(t *testing.T) {
					s, p := set(t)
					c, idle := connectRaw(t, p), connectRaw(t, p)
					restore := p.BlackHole(d)
					c.send("/a", "/b")
					late := dialRaw(t, p)
					late.hello()
					c.wantSilence()
					late.wantSilence()
					if d == curatortest.ToClient {
						wantServer(t, s, "/a", "/b")
					} else if got := s.paths(); len(got) != 0 || s.open() != 2 {
						t.Errorf("server got %q on %d connections", got, s.open())
					}
					// What is only read when the hole has ended would pass.
					eventually(t, "both have lost bytes", func() bool { return p.Lost() == 2 })
					restore()
					restore()
					c.wantEnd()
					late.wantEnd()
					idle.send("/c")
					idle.wantXids(1)
					if n := p.Connections(); n != 1 {
						t.Errorf("%d connections", n)
					}
					connectRaw(t, p)
				})
			}
		})
	}
}

func TestBlackHoleHidesTheEnd(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			c, gone := connectRaw(t, p), connectRaw(t, p)
			restore := p.BlackHole(curatortest.Both)
			gone.conn.Close()
			time.Sleep(50 * time.Millisecond)
			if n := s.open(); n != 2 {
				t.Errorf("server has %d connections, want 2", n)
			}
			s.cutAll()
			c.wantSilence()
			restore()
			c.wantEnd()
			eventually(t, "all links end", func() bool { return p.Connections() == 0 })
		})
	}
}

func TestBlackHolesOverlap(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c := connectRaw(t, p)
			both, half := p.BlackHole(curatortest.Both), p.BlackHole(curatortest.ToServer)
			c.send("/a")
			c.wantSilence()
			eventually(t, "the bytes are lost", func() bool { return p.Lost() == 1 })
			both()
			c.wantSilence()
			half()
			c.wantEnd()
		})
	}
}

func TestRefuseConnects(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c := connectRaw(t, p)
			restore, twice := p.RefuseConnects(), p.RefuseConnects()
			refused := func() {
				t.Helper()
				conn, err := p.dial()
				if err == nil {
					conn.Close()
				}
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("got %v, want refusal", err)
				}
			}
			refused()
			c.send("/a")
			c.wantXids(1)
			restore()
			restore()
			refused()
			twice()
			connectRaw(t, p)
		})
	}
}

func TestAcceptSilently(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			open := connectRaw(t, p)
			restore := p.AcceptSilently()
			c := dialRaw(t, p)
			c.hello()
			c.wantSilence()
			c.fill() // until then it may not have been accepted
			restore()
			c.wantSilence()
			open.send("/a")
			open.wantXids(1)
			connectRaw(t, p)
			if n := s.open(); n != 2 {
				t.Errorf("server has %d connections, want 2", n)
			}
			c.conn.Close()
			eventually(t, "the link ends", func() bool { return p.Connections() == 2 })
		})
	}
}

func TestCut(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			a, b := connectRaw(t, p), connectRaw(t, p)
			if p.Cut(12345) {
				t.Error("cut a session that is not there")
			}
			if !p.Cut(a.session) || p.Cut(a.session) {
				t.Error("cut not once")
			}
			a.wantEnd()
			b.send("/a")
			b.wantXids(1)
			if n := p.CutAll(); n != 1 {
				t.Errorf("cut %d", n)
			}
			b.wantEnd()
			eventually(t, "the server's side ends", func() bool { return s.open() == 0 })
		})
	}
}

func TestSetTarget(t *testing.T) {
	first, p := scriptedProxy(t)
	second := newScripted(t)
	a := connectRaw(t, p)
	p.proxy.SetTarget(second.l.Addr().String())
	b := connectRaw(t, p)
	a.send("/a")
	b.send("/b")
	wantServer(t, first, "/a")
	wantServer(t, second, "/b")
	p.proxy.SetTarget("127.0.0.1:1")
	dialRaw(t, p).wantEnd()
}

func TestFourLetterWord(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			for _, half := range []bool{false, true} {
				_, p := set(t)
				c := dialRaw(t, p)
				io.WriteString(c.conn, "ruok")
				if half { // as nc does
					c.conn.(interface{ CloseWrite() error }).CloseWrite()
				}
				if got := c.wantEnd(); !bytes.Equal(got, []byte("imok, and a longer answer too\n")) {
					t.Errorf("half closed %v: %q", half, got)
				}
			}
		})
	}
}

func TestCloseEndsEverything(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			var held *curatortest.Injection
			faults := map[string]func(*faulty){
				"nothing":  func(*faulty) {},
				"frozen":   func(p *faulty) { p.Freeze() },
				"hole":     func(p *faulty) { p.BlackHole(curatortest.Both) },
				"refusing": func(p *faulty) { p.RefuseConnects() },
				"silent":   func(p *faulty) { p.AcceptSilently() },
				"held":     func(p *faulty) { held = p.Add(curatortest.Rule{Action: curatortest.HoldRequest}) },
				"held up": func(p *faulty) { // a reply, if the server is fast enough
					p.Add(curatortest.Rule{Action: curatortest.HoldReply, MayMiss: true})
				},
				"delayed": func(p *faulty) {
					p.Add(curatortest.Rule{Action: curatortest.DelayReply, Delay: time.Hour, MayMiss: true})
				},
			}
			for name, fault := range faults {
				t.Run(name, func(t *testing.T) {
					_, p := set(t)
					c := connectRaw(t, p)
					fault(p)
					c.send("/a")
					if conn, err := p.dial(); err == nil {
						defer conn.Close()
					}
					if name == "held" { // the others may find nothing to act on
						wait(t, held)
					}
					time.Sleep(10 * time.Millisecond)
					if err := p.close(); err != nil {
						t.Error(err)
					}
					if err := p.close(); err != nil {
						t.Error(err)
					}
					c.wantEnd()
					if p.Connections() != 0 {
						t.Errorf("%d connections", p.Connections())
					}
				})
			}
		})
	}
}

func TestRestoreAfterClose(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			restores := []func(){p.RefuseConnects(), p.Freeze(), p.BlackHole(curatortest.Both), p.AcceptSilently()}
			p.close()
			for _, restore := range restores {
				restore()
			}
			if conn, err := p.dial(); err == nil {
				conn.Close()
				t.Error("listens after Close")
			}
		})
	}
}

func TestThousandCuts(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			s, p := set(t)
			actions := []curatortest.Action{
				curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply, curatortest.DropReply,
			}
			files := openFiles(t)
			for i := range 1000 {
				c := connectRaw(t, p)
				action := actions[i%len(actions)]
				in := p.Add(curatortest.Rule{Path: "/b", Action: action, Count: 1})
				c.send("/a", "/b", "/event")
				if action == curatortest.DropReply {
					c.wantXids(1, -1, 3)
					p.Cut(c.session)
				}
				c.wantEnd()
				wait(t, in)
				in.Remove()
				c.conn.Close()
			}
			eventually(t, "all links end", func() bool { return p.Connections() == 0 && s.open() == 0 })
			if now := openFiles(t); now > files+5 {
				t.Errorf("%d open files, %d before", now, files)
			}
			if !slices.Equal(s.paths()[:1], []string{"/a"}) {
				t.Error("server saw nothing")
			}
		})
	}
}

// openFiles counts the process's file descriptors, where it can.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
