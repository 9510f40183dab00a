package java_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections to a server. It hands out a connection, for a cut, after some answers.
type proxy struct {
	ln   net.Listener
	busy chan net.Conn // the client's side of each
	wg   sync.WaitGroup
}

// someAnswers is more than a client receives while it connects, in bytes.
const someAnswers = 2000

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, busy: make(chan net.Conn, 100)}
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.carry(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.wg.Wait()
	})
	return p
}

// carry forwards a connection and returns when either side ends.
func (p *proxy) carry(client net.Conn, server string) {
	defer client.Close()
	c, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	p.wg.Go(func() {
		defer c.Close()
		_, _ = io.Copy(c, client)
	})
	if _, err := io.CopyN(client, c, someAnswers); err == nil {
		p.busy <- client
		_, _ = io.Copy(client, c)
	}
}
