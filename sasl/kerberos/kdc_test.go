package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// listen serves connections by TCP until the test ends. To each of them it gives answer.
func listen(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				answer(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// echo answers with the request.
func echo(conn net.Conn) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		return
	}
	_, _ = conn.Write(append(head[:], b...))
}

// answers returns a server that reads something, and writes b.
func answers(b string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 100))
		_, _ = conn.Write([]byte(b))
	}
}

// nobody is an address where nothing listens.
const nobody = "127.0.0.1:1"

func TestAsk(t *testing.T) {
	t.Parallel()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer udp.Close()
	wg.Go(func() {
		b := make([]byte, 100)
		if n, from, err := udp.ReadFrom(b); err == nil {
			_, _ = udp.WriteTo(b[:n], from)
		}
	})
	good := listen(t, echo)
	for name, tt := range map[string]struct {
		addrs []string
		wrong string // part of the error
	}{
		"good":                  {[]string{good}, ""},
		"first is away":         {[]string{nobody, good}, ""},
		"first closes":          {[]string{listen(t, answers("")), good}, ""},
		"UDP alone":             {[]string{udp.LocalAddr().String()}, ""},
		"nobody":                {[]string{nobody, "127.0.0.1:2"}, "127.0.0.1:2"},
		"a reply that is long":  {[]string{listen(t, answers("\xff\xff\xff\xff"))}, "too long"},
		"a reply that is empty": {[]string{listen(t, answers("\x00\x00\x00\x00"))}, "unexpected EOF"},
		"a reply that ends":     {[]string{listen(t, answers("\x00\x00\x00\x05abcd"))}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &config{kdcs: map[string][]string{"A": tt.addrs}}
			reply, err := ask(testenv.Context(t), c, "A", []byte("request"))
			if tt.wrong == "" && (string(reply) != "request" || err != nil) ||
				tt.wrong != "" && (!errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("%q, %v", reply, err)
			}
		})
	}
	if _, err := ask(t.Context(), &config{}, "A", nil); !errors.Is(err, errNoKDC) {
		t.Errorf("without a KDC: %v", err)
	}
}

// A KDC that does not answer does not hold up a login that has ended.
func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), kdcTimeout)
		defer cancel()
		conn, server := net.Pipe()
		defer server.Close()
		began := time.Now()
		time.AfterFunc(time.Second, cancel)
		_, err := askOn(ctx, conn, func(conn net.Conn) ([]byte, error) {
			_, err := conn.Read(make([]byte, 1))
			return nil, err
		})
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ask(ctx, &config{kdcs: map[string][]string{"A": {nobody, nobody}}}, "A", nil)
	if !errors.Is(err, errNoAnswer) || !errors.Is(err, context.Canceled) || strings.Count(err.Error(), nobody) > 1 {
		t.Errorf("the error is %v", err)
	}
}
