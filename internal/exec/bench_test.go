package exec_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// serveNull answers every getData at once with nothing, and allocates nothing for it: what is measured is the
// client.
func serveNull(nc net.Conn) {
	defer nc.Close()
	r, w := bufio.NewReaderSize(nc, 64<<10), bufio.NewWriterSize(nc, 64<<10)
	frame := make([]byte, 64<<10)
	answer := make([]byte, 4+16+4+68) // header, null data, stat
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	binary.BigEndian.PutUint32(answer[20:], 0xffffffff)
	for greeted := false; ; greeted = true {
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
		if greeted {
			copy(answer[4:8], frame[:4])
			_, _ = w.Write(answer)
			continue
		}
		b := jute.AppendConnectResponse(make([]byte, 4), &jute.ConnectResponse{
			TimeoutMs: 30_000, SessionID: 1, Password: make([]byte, jute.PasswordSize), HasReadOnly: true,
		})
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		_, _ = w.Write(b)
	}
}

// benchExecutor returns an executor with a connection to such a server.
func benchExecutor(b *testing.B) *exec.Executor {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
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
	connected := make(chan struct{}, 10)
	var e *exec.Executor
	conn, err := wire.Open(wire.Config{
		Servers: []string{l.Addr().String()}, SessionTimeout: 30 * time.Second, ConnectTimeout: connectTimeout,
		CloseWait: time.Second, Dial: new(net.Dialer).DialContext, Logger: slog.New(slog.DiscardHandler),
		OnState:  func(wire.State) { connected <- struct{}{} },
		OnUnsent: func(requests []*wire.Request) { e.Unsent(requests) },
	})
	if err != nil {
		b.Fatal(err)
	}
	queue := dispatch.Start()
	dispatcher := func(t dispatch.Task) { queue.Push(t) }
	e = exec.New(func() *wire.Conn { return conn }, everySecond(1), connectTimeout, dispatcher, nil)
	e.Start()
	b.Cleanup(func() {
		e.Stop()
		conn.Close()
		e.Drain(time.Minute)
		queue.Close(patience)
		_ = l.Close()
		wg.Wait()
	})
	<-connected
	b.ReportAllocs()
	b.ResetTimer()
	return e
}

// one is an operation of one request.
type one struct {
	exec.Operation
	window chan struct{}
}

func newOne(window chan struct{}) *one {
	o := &one{window: window}
	o.Protocol = o
	o.Prepare(jute.Request{Op: jute.OpGetData, Path: "/bench"})
	return o
}

func (o *one) Begin()    { o.Send(o.answered) }
func (o *one) answered() { o.Finish(o.Err()) }
func (o *one) Deliver()  { <-o.window }

func BenchmarkGo(b *testing.B) {
	e := benchExecutor(b)
	window := make(chan struct{}, 1000)
	for range b.N {
		window <- struct{}{}
		if err := e.Go(context.Background(), &newOne(window).Operation); err != nil {
			b.Fatal(err)
		}
	}
	for range cap(window) {
		window <- struct{}{}
	}
}

func BenchmarkDo(b *testing.B) {
	e := benchExecutor(b)
	for range b.N {
		if err := e.Do(context.Background(), &newOne(nil).Operation); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDoInParallel(b *testing.B) {
	e := benchExecutor(b)
	b.SetParallelism(64) // 128 goroutines on two processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := e.Do(context.Background(), &newOne(nil).Operation); err != nil {
				b.Error(err)
			}
		}
	})
}
