package curatortest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

// blunt is a server that only takes bytes and gives bytes, behind faults.
type blunt struct {
	*curatortest.Faults
	client, server net.Conn
	close          func() error
}

// bluntWays are those of ways.
var bluntWays = map[string]func(t *testing.T) *blunt{
	"proxy": func(t *testing.T) *blunt {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		p := newProxy(t, l.Addr().String())
		client, err := net.Dial("tcp", p.Addr())
		must(t, err)
		server, err := l.Accept()
		must(t, err)
		return newBlunt(t, p.Faults(), client, server, p.Close)
	},
	"memory": func(t *testing.T) *blunt {
		t.Helper()
		accepted := make(chan net.Conn, 1)
		f := curatortest.NewFaults(func(context.Context) (net.Conn, error) {
			ours, theirs := curatortest.NewPipe()
			accepted <- theirs
			return ours, nil
		})
		t.Cleanup(func() { f.Close() })
		client, err := f.Connect(t.Context())
		must(t, err)
		return newBlunt(t, f, client, <-accepted, f.Close)
	},
}

func newBlunt(t *testing.T, f *curatortest.Faults, client, server net.Conn, closeAll func() error) *blunt {
	t.Helper()
	for _, conn := range []net.Conn{client, server} {
		t.Cleanup(func() { conn.Close() })
		must(t, conn.SetDeadline(time.Now().Add(limit)))
	}
	return &blunt{f, client, server, closeAll}
}

func write(t *testing.T, to net.Conn, what []byte) {
	t.Helper()
	if _, err := to.Write(what); err != nil {
		t.Fatal(err)
	}
}

// wantBytes checks what comes next, and no more than that.
func wantBytes(t *testing.T, from net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(from, got)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %.60q, %v; want %.60q", got[:n], err, want)
	}
}

func (b *blunt) handshake(t *testing.T) {
	t.Helper()
	hello := frameOf(jute.AppendConnectRequest(nil, &jute.ConnectRequest{TimeoutMs: 10_000, Password: make([]byte, 16)}))
	write(t, b.client, hello)
	wantBytes(t, b.server, hello)
	welcome := frameOf(jute.AppendConnectResponse(nil, &jute.ConnectResponse{
		TimeoutMs: 10_000, SessionID: 7, Password: make([]byte, 16),
	}))
	write(t, b.server, welcome)
	wantBytes(t, b.client, welcome)
}

func getData(xid int32) []byte {
	b := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: xid, Op: jute.OpGetData})
	return frameOf(jute.AppendRequest(b, "", &jute.Request{Op: jute.OpGetData, Path: "/a"}))
}

func answer(xid int32) []byte {
	return frameOf(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: xid, Zxid: 1}))
}

// hostile is what no client and no server sends, and passes as it comes.
var hostile = map[string][]byte{
	"negative length":           {0xff, 0xff, 0xff, 0xff, 0},
	"least length":              {0x80, 0, 0, 0, 1, 2, 3},
	"length of 2 GiB":           {0x7f, 0xff, 0xff, 0xff},
	"more than any server gets": {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 4},
	"HTTP":                      []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	"TLS":                       []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	"empty frame":               {0, 0, 0, 0},
	"empty frames":              {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	"shorter than a header":     frameOf([]byte{0, 0, 0, 1, 0, 0}),
	"header and no body":        frameOf([]byte{0, 0, 0, 1, 0, 0, 0, 4}),
	"no such operation":         frameOf([]byte{0, 0, 0, 1, 0, 0, 0x7f, 4}),
	"string of 2 GiB":           frameOf([]byte{0, 0, 0, 1, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff}),
	"multi of 2 Gi operations":  frameOf([]byte{0, 0, 0, 1, 0, 0, 0, 14, 0x7f, 0xff, 0xff, 0xff}),
	"set watches of nothing":    frameOf([]byte{0xff, 0xff, 0xff, 0xf8, 0, 0, 0, 101}),
	"letters, no word":          []byte("abcdefgh"),
}

func TestHostileBytesReachTheServer(t *testing.T) {
	for name, what := range hostile {
		t.Run(name, func(t *testing.T) {
			for kind, set := range bluntWays {
				t.Run(kind, func(t *testing.T) {
					b := set(t)
					write(t, b.client, what)
					wantBytes(t, b.server, what)
					b.server.Close()
					wantEOF(t, b.client)
				})
			}
		})
	}
}

func TestHostileBytesReachTheServerAfterTheHandshake(t *testing.T) {
	for name, what := range hostile {
		t.Run(name, func(t *testing.T) {
			for kind, set := range bluntWays {
				t.Run(kind, func(t *testing.T) {
					b := set(t)
					b.handshake(t)
					write(t, b.client, getData(1))
					wantBytes(t, b.server, getData(1))
					write(t, b.client, what)
					wantBytes(t, b.server, what)
					write(t, b.server, answer(1))
					wantBytes(t, b.client, answer(1))
					b.server.Close()
					wantEOF(t, b.client)
				})
			}
		})
	}
}

func TestHostileBytesReachTheClient(t *testing.T) {
	for name, what := range hostile {
		t.Run(name, func(t *testing.T) {
			for kind, set := range bluntWays {
				t.Run(kind, func(t *testing.T) {
					b := set(t)
					write(t, b.server, what)
					wantBytes(t, b.client, what)
				})
			}
			for kind, set := range bluntWays {
				t.Run(kind, func(t *testing.T) {
					b := set(t)
					b.handshake(t)
					write(t, b.client, getData(1))
					wantBytes(t, b.server, getData(1))
					write(t, b.server, what)
					wantBytes(t, b.client, what)
					b.client.Close()
					wantEOF(t, b.server)
				})
			}
		})
	}
}

// wantEOF reads the end of a connection, which with a socket may be a reset.
func wantEOF(t *testing.T, conn net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(conn); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %.60q, %v; want the end", rest, err)
	}
}

// What came of a frame is delivered, though no rule sees it, when its sender ends the connection.
func TestHalfFramesPass(t *testing.T) {
	for _, n := range []int{1, 3, 4, 5, 12, 15} {
		for kind, set := range bluntWays {
			t.Run(kind, func(t *testing.T) {
				b := set(t)
				in := b.Add(curatortest.Rule{Action: curatortest.CutBefore, MayMiss: true})
				b.handshake(t)
				half := getData(1)[:n]
				write(t, b.client, half)
				b.client.Close()
				wantBytes(t, b.server, half)
				wantEOF(t, b.server)
				if in.Hits() != 0 {
					t.Error("half a frame was taken for a request")
				}
			})
		}
		for kind, set := range bluntWays {
			t.Run(kind, func(t *testing.T) {
				b := set(t)
				b.handshake(t)
				half := answer(1)[:n]
				write(t, b.server, half)
				b.server.Close()
				wantBytes(t, b.client, half)
				wantEOF(t, b.client)
			})
		}
	}
}

func TestShortAnswerToACommand(t *testing.T) {
	for kind, set := range bluntWays {
		t.Run(kind, func(t *testing.T) {
			b := set(t)
			write(t, b.client, []byte("isro"))
			wantBytes(t, b.server, []byte("isro"))
			write(t, b.server, []byte("rw"))
			b.server.Close()
			wantBytes(t, b.client, []byte("rw"))
			wantEOF(t, b.client)
		})
	}
}

// A server ends the connection when it has read the length of a frame that is too long for it, and does not wait for
// the rest.
func TestServerLearnsOfALongFrameAtOnce(t *testing.T) {
	for kind, set := range bluntWays {
		t.Run(kind, func(t *testing.T) {
			b := set(t)
			b.handshake(t)
			long := frameOf(make([]byte, maxFrame+1))
			write(t, b.client, long[:20])
			wantBytes(t, b.server, long[:4])
			b.server.Close()
			wantEOF(t, b.client)
		})
	}
}

// A server may be configured for more than clients usually send.
func TestRulesSeeLongFrames(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 2<<20)
	long := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: 1, Op: jute.OpSetData})
	long = frameOf(jute.AppendRequest(long, "", &jute.Request{Op: jute.OpSetData, Path: "/long", Data: data}))
	rule := curatortest.Rule{Path: "/long", Count: 1}
	t.Run("DropReply", func(t *testing.T) {
		for kind, set := range bluntWays {
			t.Run(kind, func(t *testing.T) {
				b := set(t)
				rule.Action = curatortest.DropReply
				b.Add(rule)
				b.handshake(t)
				go b.client.Write(append(slices.Clone(long), getData(2)...))
				wantBytes(t, b.server, long)
				wantBytes(t, b.server, getData(2))
				write(t, b.server, slices.Concat(answer(1), answer(2)))
				wantBytes(t, b.client, answer(2))
			})
		}
	})
	t.Run("CutBefore", func(t *testing.T) {
		for kind, set := range bluntWays {
			t.Run(kind, func(t *testing.T) {
				b := set(t)
				rule.Action = curatortest.CutBefore
				in := b.Add(rule)
				b.handshake(t)
				go b.client.Write(long)
				wantBytes(t, b.server, long[:4])
				wantEOF(t, b.server)
				wait(t, in)
			})
		}
	})
	t.Run("ReplyError", func(t *testing.T) {
		for kind, set := range bluntWays {
			t.Run(kind, func(t *testing.T) {
				b := set(t)
				rule.Action, rule.Err = curatortest.ReplyError, jute.ErrThrottledOp
				b.Add(rule)
				b.handshake(t)
				go b.client.Write(append(slices.Clone(long), getData(2)...))
				frame, err := readFrame(io.LimitReader(b.server, 4)) // only its length is too long for that
				if len(frame) != 0 || !errors.Is(err, errTooLong) {
					t.Fatalf("%d bytes, %v", len(frame), err)
				}
				body := make([]byte, len(long)-4)
				_, err = io.ReadFull(b.server, body)
				must(t, err)
				h, body, err := jute.DecodeRequestHeader(body)
				must(t, err)
				r, err := jute.DecodeRequest(h.Op, body)
				must(t, err)
				if h.Xid != 1 || r.Op != jute.OpExists || r.Path != "/" || r.Watch {
					t.Errorf("in place of the request came %+v %+v", h, r)
				}
				wantBytes(t, b.server, getData(2))
			})
		}
	})
}

// Sequence: the length of a frame has gone ahead, its rest is swallowed, and what is behind comes when that direction
// works again. The server would take it for the rest.
func TestNothingPassesBehindHalfASwallowedFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bluntWays["memory"](t)
		b.handshake(t)
		long := frameOf(make([]byte, maxFrame+1))
		write(t, b.client, long[:10])
		wantBytes(t, b.server, long[:4])
		up, down := b.BlackHole(curatortest.ToServer), b.BlackHole(curatortest.ToClient)
		write(t, b.client, long[10:])
		synctest.Wait()
		up()
		write(t, b.client, getData(1))
		must(t, b.server.SetReadDeadline(time.Now().Add(time.Second)))
		if n, err := b.server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d, %v", n, err)
		}
		must(t, b.server.SetReadDeadline(time.Time{}))
		down()
		wantEOF(t, b.server)
		b.client.Close()
		must(t, b.close())
	})
}

// Likewise if it is the length that is swallowed.
func TestNothingPassesBehindASwallowedLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bluntWays["memory"](t)
		b.handshake(t)
		long := frameOf(make([]byte, maxFrame+1))
		up, down := b.BlackHole(curatortest.ToServer), b.BlackHole(curatortest.ToClient)
		write(t, b.client, long[:10])
		synctest.Wait()
		up()
		write(t, b.client, long[10:])
		must(t, b.server.SetReadDeadline(time.Now().Add(time.Second)))
		if n, err := b.server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d, %v", n, err)
		}
		must(t, b.server.SetReadDeadline(time.Time{}))
		down()
		wantEOF(t, b.server)
		b.client.Close()
		must(t, b.close())
	})
}

func TestLengthsClaimNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bluntWays["memory"](t)
		b.handshake(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		claim := []byte{3, 0xff, 0xff, 0xff, 0, 0, 0, 1}
		write(t, b.client, claim)
		write(t, b.server, claim)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%d bytes for lengths alone", n)
		}
		must(t, b.close())
		b.client.Close()
	})
}

func TestTraceOfWhatCannotBeRead(t *testing.T) {
	for kind, set := range bluntWays {
		t.Run(kind, func(t *testing.T) {
			b := set(t)
			in := b.Add(curatortest.Rule{Action: curatortest.CutBefore, MayMiss: true})
			b.handshake(t)
			write(t, b.client, []byte{0, 0, 0, 0})
			wantBytes(t, b.server, []byte{0, 0, 0, 0})
			write(t, b.server, []byte{0, 0, 0, 0})
			wantBytes(t, b.client, []byte{0, 0, 0, 0})
			want := "#1 0x0 0 > connect\n#1 0x7 0 < connect OK\n#1 0x7 0 > ?\n#1 0x7 0 < ? OK"
			if got := curatortest.FormatTrace(b.Trace()); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if in.Hits() != 0 {
				t.Error("a rule acted on what cannot be read")
			}
		})
	}
}
