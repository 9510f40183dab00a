package wire_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// nullServer answers every getData at once with nothing, and allocates nothing for it: what is measured is
// the client.
func nullServer(tb testing.TB) (address string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveNull(nc) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func serveNull(nc net.Conn) {
	defer nc.Close()
	r, w := bufio.NewReaderSize(nc, 64<<10), bufio.NewWriterSize(nc, 64<<10)
	frame := make([]byte, 64<<10)
	answer := make([]byte, 4+16+4+68) // header, null data, stat
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	binary.BigEndian.PutUint32(answer[20:], 0xffffffff)
	for greeted := false; ; {
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
		if _, err := io.ReadFull(r, frame[:4]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(frame)
		if _, err := io.ReadFull(r, frame[:n]); err != nil {
			return
		}
		if !greeted {
			greeted = true
			_, _ = w.Write(framed(jute.AppendConnectResponse(nil, &jute.ConnectResponse{
				TimeoutMs: 30_000, SessionID: 1, Password: make([]byte, jute.PasswordSize), HasReadOnly: true,
			})))
			continue
		}
		copy(answer[4:8], frame[:4])
		if op := jute.Op(int32(binary.BigEndian.Uint32(frame[4:]))); op == jute.OpCloseSession {
			_, _ = w.Write(answer)
			_ = w.Flush()
			return
		}
		_, _ = w.Write(answer)
	}
}

func benchClient(b *testing.B) *client {
	b.Helper()
	c := open(b, wire.Config{Servers: []string{nullServer(b)}})
	c.want(b, wire.Connected)
	b.ReportAllocs()
	b.ResetTimer()
	return c
}

// windowed keeps requests in flight until enough were answered; a request is used again and again.
type windowed struct {
	c       *wire.Conn
	left    int
	waiting int
	done    chan struct{}
}

func (w *windowed) Answered(r *wire.Request) {
	if w.left > 0 {
		w.left--
		_ = w.c.Submit(r, false)
		return
	}
	if w.waiting--; w.waiting == 0 {
		close(w.done)
	}
}

func BenchmarkSubmitFromTheReader(b *testing.B) {
	c := benchClient(b)
	window := min(1000, b.N)
	w := &windowed{c: c.Conn, left: b.N - window, waiting: window, done: make(chan struct{})}
	start := make([]*wire.Request, window)
	for i := range start {
		start[i] = get("/bench", w)
	}
	for _, r := range start {
		c.submit(b, r)
	}
	<-w.done
}

// tokens is a window that other goroutines submit into.
type tokens chan *wire.Request

func (t tokens) Answered(r *wire.Request) { t <- r }

func BenchmarkSubmitWithoutWaiting(b *testing.B) {
	c := benchClient(b)
	window := make(tokens, 1000)
	for range cap(window) {
		window <- get("/bench", window)
	}
	for range b.N {
		c.submit(b, <-window)
	}
	for range cap(window) {
		<-window
	}
}

func BenchmarkSubmitAndWait(b *testing.B) {
	for _, goroutines := range []int{1, 16, 128} {
		b.Run(map[int]string{1: "1", 16: "16", 128: "128"}[goroutines], func(b *testing.B) {
			c := benchClient(b)
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					answer := make(tokens, 1)
					r := get("/bench", answer)
					for range b.N/goroutines + min(1, max(0, b.N%goroutines-g)) {
						if err := c.Submit(r, true); err != nil {
							b.Error(err)
							return
						}
						<-answer
					}
				})
			}
			wg.Wait()
		})
	}
}
