package curatortest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var _ net.Conn = (*pipe)(nil)

func pipes(t *testing.T) (a, b *pipe) {
	t.Helper()
	a, b = newPipe()
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

func wantTimeout(t *testing.T, err error) {
	t.Helper()
	var e net.Error
	if !errors.As(err, &e) || !e.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func fill(t *testing.T, p *pipe) {
	t.Helper()
	if n, err := p.Write(make([]byte, streamMost)); n != streamMost || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
}

// Reads and writes of all sizes, so that the ring grows and wraps everywhere.
func TestPipeCarriesBytesUnchanged(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		sent := make([]byte, 300_000)
		for i := range sent {
			sent[i] = byte(rnd.Uint32())
		}
		a, b := pipes(t)
		var wg sync.WaitGroup
		write := func(p *pipe, seed uint64) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), rnd.IntN(1<<rnd.IntN(18)))
				if got, err := p.Write(rest[:n]); got != n || err != nil {
					t.Errorf("wrote %d of %d: %v", got, n, err)
					return
				}
				rest = rest[n:]
			}
			p.CloseWrite()
		}
		read := func(p *pipe, seed uint64) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			var got []byte
			for {
				buf := make([]byte, 1+rnd.IntN(1<<rnd.IntN(18)))
				n, err := p.Read(buf)
				got = append(got, buf[:n]...)
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					break
				}
			}
			if !bytes.Equal(got, sent) {
				t.Errorf("seed %d: other bytes came, %d of %d", seed, len(got), len(sent))
			}
		}
		wg.Go(func() { write(a, seed) })
		wg.Go(func() { write(b, seed) })
		wg.Go(func() { read(a, seed) })
		wg.Go(func() { read(b, seed) })
		wg.Wait()
	}
}

func TestPipeWriterWaitsForRoomOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(t)
		fill(t, a)
		done := false
		go func() {
			a.Write([]byte("x"))
			done = true
		}()
		synctest.Wait()
		if done {
			t.Error("wrote into a full buffer")
		}
		io.ReadFull(b, make([]byte, 1))
		synctest.Wait()
		if !done {
			t.Error("still waits")
		}
	})
}

func TestPipeReaderWaitsForBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(t)
		var got []byte
		go func() {
			buf := make([]byte, 10)
			n, _ := b.Read(buf)
			got = buf[:n]
		}()
		synctest.Wait()
		a.Write(nil)
		synctest.Wait()
		if got != nil {
			t.Error("read nothing")
		}
		a.Write([]byte("abc"))
		synctest.Wait()
		if string(got) != "abc" {
			t.Errorf("read %q", got)
		}
	})
}

func TestPipeEndsAfterTheLastByte(t *testing.T) {
	for name, end := range map[string]func(*pipe) error{"close": (*pipe).Close, "half close": (*pipe).CloseWrite} {
		t.Run(name, func(t *testing.T) {
			a, b := pipes(t)
			a.Write([]byte("last words"))
			if err := end(a); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if n, err := b.Read(nil); n != 0 || err != nil {
				t.Errorf("read of nothing: %d, %v", n, err)
			}
			if _, err := a.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write after the end: %v", err)
			}
		})
	}
}

func TestPipeAnswersAfterHalfClose(t *testing.T) {
	a, b := pipes(t)
	a.CloseWrite()
	if _, err := b.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	b.Close()
	if got, err := io.ReadAll(a); string(got) != "answer" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestPipeWriteToClosedPeer(t *testing.T) {
	a, b := pipes(t)
	b.Close()
	for _, what := range [][]byte{[]byte("x"), nil} {
		if _, err := a.Write(what); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write of %q: %v", what, err)
		}
	}
	var e *net.OpError
	if _, err := a.Write([]byte("x")); !errors.As(err, &e) || e.Net != "memory" || e.Timeout() {
		t.Errorf("got %#v", err)
	}
}

func TestPipeCloseWakesBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(t)
		fill(t, a)
		fill(t, b)
		want := map[string]error{}
		var wg sync.WaitGroup
		var mu sync.Mutex
		check := func(name string, want2 error, do func() error) {
			want[name] = want2
			wg.Go(func() {
				err := do()
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, want[name]) {
					t.Errorf("%s: got %v, want %v", name, err, want[name])
				}
			})
		}
		one := []byte("x")
		check("own write", net.ErrClosed, func() error { _, err := a.Write(one); return err })
		check("their write", syscall.EPIPE, func() error { _, err := b.Write(one); return err })
		synctest.Wait()
		a.Close()
		a.Close()
		wg.Wait()
		if _, err := a.Read(one); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own read: %v", err)
		}

		c, d := pipes(t)
		check("own read", net.ErrClosed, func() error { _, err := c.Read(make([]byte, 1)); return err })
		check("their read", io.EOF, func() error { _, err := d.Read(make([]byte, 1)); return err })
		synctest.Wait()
		c.Close()
		wg.Wait()
	})
}

func TestPipeDeadlines(t *testing.T) {
	one := make([]byte, 1)
	kinds := map[string]struct {
		do  func(p *pipe) error
		set func(p *pipe, t time.Time) error
	}{
		"read": {
			func(p *pipe) error { _, err := p.Read(one); return err },
			(*pipe).SetReadDeadline,
		},
		"write": {
			func(p *pipe) error { _, err := p.Write(one); return err },
			(*pipe).SetWriteDeadline,
		},
		"read with both": {
			func(p *pipe) error { _, err := p.Read(one); return err },
			(*pipe).SetDeadline,
		},
		"write with both": {
			func(p *pipe) error { _, err := p.Write(one); return err },
			(*pipe).SetDeadline,
		},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipes(t)
				fill(t, a)
				after := func(want time.Duration) {
					t.Helper()
					start := time.Now()
					wantTimeout(t, kind.do(a))
					if d := time.Since(start); d != want {
						t.Errorf("after %v, want %v", d, want)
					}
				}
				kind.set(a, time.Now().Add(time.Second))
				after(time.Second)
				after(0) // it stays
				kind.set(a, time.Now().Add(-time.Second))
				after(0)
				kind.set(a, time.Now().Add(time.Hour))
				kind.set(a, time.Now().Add(time.Second)) // the nearer one counts
				after(time.Second)
				kind.set(a, time.Now().Add(time.Second))
				time.AfterFunc(time.Second/2, func() { kind.set(a, time.Now().Add(time.Minute)) }) // or the later
				after(time.Minute + time.Second/2)

				kind.set(a, time.Now().Add(time.Second))
				time.AfterFunc(time.Second/2, func() { kind.set(a, time.Time{}) })
				time.AfterFunc(time.Hour, func() {
					io.ReadFull(b, make([]byte, 1))
					b.Write(one)
				})
				start := time.Now()
				if err := kind.do(a); err != nil || time.Since(start) != time.Hour {
					t.Errorf("without a deadline: %v after %v", err, time.Since(start))
				}
				a.Close()
				if err := kind.set(a, time.Now().Add(time.Second)); err != nil {
					t.Error(err)
				}
				if err := kind.do(a); !errors.Is(err, net.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

// A deadline in the past makes both sides give up, but not the peer, and nothing is lost by it.
func TestPipeDeadlineKeepsTheBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(t)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := a.Write(make([]byte, streamMost+5))
		wantTimeout(t, err)
		if n != streamMost {
			t.Errorf("wrote %d", n)
		}
		b.SetReadDeadline(time.Now())
		_, err = b.Read(make([]byte, 1))
		wantTimeout(t, err)
		b.SetReadDeadline(time.Time{})
		a.Close()
		if got, err := io.ReadAll(b); len(got) != streamMost || err != nil {
			t.Errorf("read %d, %v", len(got), err)
		}
	})
}

func TestPipeAddresses(t *testing.T) {
	a, _ := pipes(t)
	for _, addr := range []net.Addr{a.LocalAddr(), a.RemoteAddr()} {
		if addr.Network() != "memory" || addr.String() != "memory" {
			t.Errorf("got %s %s", addr.Network(), addr)
		}
	}
}

func TestPipeStartsSmall(t *testing.T) {
	a, b := pipes(t)
	for range 1000 {
		a.Write(make([]byte, 100))
		io.ReadFull(b, make([]byte, 100))
	}
	if n := len(b.in.buf); n != streamLeast {
		t.Errorf("a buffer of %d bytes for 100", n)
	}
}

func BenchmarkPipe(b *testing.B) {
	x, y := newPipe()
	defer x.Close()
	defer y.Close()
	go io.Copy(y, y)
	buf := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		x.SetReadDeadline(time.Now().Add(time.Minute))
		x.Write(buf)
		io.ReadFull(x, buf)
	}
}
