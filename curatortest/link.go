package curatortest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// link is a connection of a client and the one to the server it is forwarded to.
type link struct {
	faults  *Faults
	number  int64           // of all connections, from 1 on
	ctx     context.Context // ends when the link is cut
	cancel  context.CancelFunc
	client  net.Conn
	secure  *tls.Config // nil without TLS
	session atomic.Int64
	lost    atomic.Bool // something fell into a black hole
	command atomic.Bool // no frames: a four letter word and its answer

	mu      sync.Mutex
	server  net.Conn // nil before it is connected
	wasCut  bool
	pending []request // forwarded and not answered
	head    int       // the first of them
}

// request is a request on its way, with the rules that wait for its reply.
type request struct {
	message
	acts []*Injection
	code jute.Code // the code of the reply, if the server never gets the request
	cuts bool      // the link ends behind that reply
}

func newLink(f *Faults, client net.Conn, number int64) *link {
	l := &link{faults: f, client: client, number: number}
	l.ctx, l.cancel = context.WithCancel(f.ctx)
	return l
}

// run forwards until one side ends the connection or it is cut.
func (l *link) run() {
	defer l.cut()
	t, ok := l.awaitThaw()
	if !ok {
		return
	}
	if t.silent > 0 || t.swallows(ToServer) {
		if t.silent == 0 && !l.lose() {
			return
		}
		io.Copy(io.Discard, l.client) //nolint:errcheck // ends when the client goes or the link is cut
		return
	}
	client, cert, err := l.shakeHands()
	if err != nil {
		l.linger()
		return
	}
	server, err := l.faults.dial(l.ctx, cert)
	if err != nil || !l.setServer(server) {
		return
	}
	up := newPump(l, ToServer, client, server)
	down := newPump(l, ToClient, server, client)
	l.faults.wg.Go(down.run)
	up.run()
	if l.command.Load() {
		<-l.ctx.Done() // the command was forwarded, and its answer comes
	}
}

// shakeHands returns the connection that frames come from, and the certificate of the client if TLS has verified one.
func (l *link) shakeHands() (net.Conn, *x509.Certificate, error) {
	if l.secure == nil {
		return l.client, nil, nil
	}
	raw := &handshake{Conn: l.client, link: l}
	conn := tls.Server(raw, l.secure)
	if err := conn.HandshakeContext(l.ctx); err != nil {
		return nil, nil, err
	}
	raw.over.Store(true)
	if chains := conn.ConnectionState().VerifiedChains; len(chains) > 0 {
		return conn, chains[0][0], nil
	}
	return conn, nil, nil
}

// handshake is a connection whose bytes are subject to the faults of the network, until the pumps see to that.
type handshake struct {
	net.Conn
	link *link
	over atomic.Bool
}

// Read reads bytes that no black hole has swallowed.
func (h *handshake) Read(b []byte) (int, error) {
	for {
		n, err := h.Conn.Read(b)
		if err != nil || h.over.Load() {
			return n, err
		}
		pass, ok := h.admit(ToServer)
		switch {
		case !ok:
			return 0, errCut
		case pass:
			return n, nil
		}
	}
}

func (h *handshake) Write(b []byte) (int, error) {
	if !h.over.Load() {
		pass, ok := h.admit(ToClient)
		switch {
		case !ok:
			return 0, errCut
		case !pass:
			return len(b), nil
		}
	}
	return h.Conn.Write(b)
}

// admit waits while the connections are frozen. pass reports whether the bytes pass or are lost; ok is false when the
// link is cut.
func (h *handshake) admit(d Direction) (pass, ok bool) {
	t, ok := h.link.awaitThaw()
	if !ok || !t.swallows(d) {
		return ok, ok
	}
	return false, h.link.lose()
}

// lingerLimit bounds the time in which a client reads why the handshake has failed.
const lingerLimit = 10 * time.Second

// linger ends the connection in such a way that the client can read what was sent. A system that closes a connection
// with unread bytes resets it.
func (l *link) linger() {
	c, ok := l.client.(*net.TCPConn)
	if !ok || c.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerLimit)) != nil {
		return
	}
	io.Copy(io.Discard, c) //nolint:errcheck // ends when the client goes, the link is cut, or the time is over
}

func (l *link) setServer(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wasCut {
		conn.Close() //nolint:errcheck // nothing was sent
		return false
	}
	l.server = conn
	return true
}

// cut closes both sides. It reports whether they were open.
func (l *link) cut() bool {
	l.mu.Lock()
	first := !l.wasCut
	if first {
		l.wasCut = true
		l.client.Close() //nolint:errcheck // an error would be the other side's
		if l.server != nil {
			l.server.Close() //nolint:errcheck // likewise
		}
	}
	l.mu.Unlock()
	l.cancel()
	l.faults.forget(l)
	return first
}

// awaitThaw returns the faults as soon as nothing is frozen, and false when the link is cut.
func (l *link) awaitThaw() (*trouble, bool) {
	for {
		t := l.faults.trouble.Load()
		if t.frozen == 0 {
			return t, l.ctx.Err() == nil
		}
		select {
		case <-t.changed:
		case <-l.ctx.Done():
			return t, false
		}
	}
}

// lose records that bytes were swallowed, and reports whether the link continues. If the black hole has been restored
// since, restore may have read the record too early, and the link is cut here.
func (l *link) lose() bool {
	l.lost.Store(true)
	if l.faults.trouble.Load().swallows(Both) {
		return true
	}
	l.cut()
	return false
}

// push records a request before it is forwarded.
func (l *link) push(r request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head > len(l.pending)/2 {
		l.pending = slices.Delete(l.pending, 0, l.head)
		l.head = 0
	}
	l.pending = append(l.pending, r)
}

// pop finds the request of a reply: the first with that xid, as pings and others share theirs. Usually it is the first
// of all; the reply to auth may overtake others.
func (l *link) pop(xid int32) (r request, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.pending[l.head:]
	i := slices.IndexFunc(waiting, func(r request) bool { return r.xid == xid })
	if i < 0 {
		return request{}, false
	}
	r = waiting[i]
	if i > 0 {
		l.pending = slices.Delete(l.pending, l.head+i, l.head+i+1)
		return r, true
	}
	waiting[0] = request{}
	l.head++
	if l.head == len(l.pending) {
		l.pending, l.head = l.pending[:0], 0
	}
	return r, true
}

// message returns the beginning of the description of a frame.
func (l *link) message() message { return message{connection: l.number, session: l.session.Load()} }

// record adds a frame to the trace.
func (l *link) record(m *message, reply bool, h jute.ReplyHeader) {
	if m.op == opPing {
		return
	}
	l.faults.trace.add(TraceEntry{
		Connection: m.connection,
		SessionID:  m.session,
		Xid:        m.xid,
		Op:         m.op,
		Path:       m.path,
		Reply:      reply,
		Code:       int32(h.Code),
		Zxid:       h.Zxid,
	})
}
