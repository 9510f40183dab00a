package wire

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/sasl"
)

// maxRounds is the largest number of tokens in a login. No mechanism of ZooKeeper needs more than four.
const maxRounds = 10

// ErrLoginRequired is the failure of a connection to a server that serves nobody without a login.
var ErrLoginRequired = fmt.Errorf("%w: %w", zk.ErrAuthFailed, jute.ErrSessionClosedRequireSASL)

// errNoSASL is the end of a login at a server that knows none. Such a server goes on, with a client that is nobody.
var errNoSASL = errors.New("the server has no SASL")

// startLogin begins the login of a connection to t, before the connection is opened: what the mechanism waits for takes
// no time from the server. It returns nil without a mechanism.
func (c *Conn) startLogin(ctx context.Context, t target) (sasl.Exchange, error) {
	if c.cfg.Login == nil {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(t.server)
	if err != nil {
		return nil, fmt.Errorf("%s: login: %w", t.server, err)
	}
	exchange, err := call(ctx, c.hosts, loginCall(t),
		func() (sasl.Exchange, error) { return c.cfg.Login.Start(ctx, host) }, nil)
	if err == nil && exchange == nil {
		err = errors.New("the mechanism has returned no exchange")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: login: %w", t.server, withoutContext(err))
	}
	return exchange, nil
}

// loginCall is the key of all calls of the mechanism for a server, for [call].
func loginCall(t target) string { return "log in to " + t.server }

// login logs in, between the answer to the connect request and everything else: a server that requires a login refuses
// even pings before it. It runs on the goroutine that reads, while no other one writes.
func (l *link) login() error {
	if l.exchange == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(l.c.ctx, l.loginEnd)
	defer cancel()
	var token []byte
	for round := range maxRounds {
		reply, done, err := l.nextToken(ctx, token)
		if err != nil || done {
			return err
		}
		if token, err = l.sendToken(firstXid-maxRounds+int32(round), reply); err != nil {
			return loginError(err, round)
		}
		if token == nil && round == 0 {
			return fmt.Errorf("%w: %w", zk.ErrAuthFailed, errNoSASL)
		}
	}
	return fmt.Errorf("%w: the login has no end", zk.ErrAuthFailed)
}

// nextToken asks the mechanism for its next token. The deadline of the connection does not end a mechanism that waits.
func (l *link) nextToken(ctx context.Context, token []byte) (reply []byte, done bool, err error) {
	type next struct {
		reply []byte
		done  bool
	}
	n, err := call(ctx, l.c.hosts, loginCall(l.c.targetOf(l)), func() (n next, err error) {
		n.reply, n.done, err = l.exchange.Next(token)
		return n, err
	}, nil)
	if err != nil {
		return nil, false, withoutContext(err)
	}
	return n.reply, n.done, nil
}

// loginError says what a refusal means. The first token asks for the mechanism, and has no secret. A server that
// requires a login has a code of its own for a refusal.
func loginError(err error, round int) error {
	if errors.Is(err, jute.ErrSessionClosedRequireSASL) {
		err = ErrLoginRequired
	}
	switch {
	case !errors.Is(err, zk.ErrAuthFailed):
		return err
	case round == 0:
		return fmt.Errorf("%w: the server refuses the first token: "+
			"it has no such mechanism, or does not know for which service it is", err)
	}
	return fmt.Errorf("%w: the server refuses the user or the password", err)
}

// sendToken returns the server's answer to a token.
func (l *link) sendToken(xid int32, token []byte) ([]byte, error) {
	if token == nil {
		token = []byte{} // a server does not answer to null
	}
	request := jute.AppendRequestHeader(make([]byte, 4), jute.RequestHeader{Xid: xid, Op: jute.OpSASL})
	request = jute.AppendRequest(request, "", &jute.Request{Op: jute.OpSASL, Data: token})
	if _, err := l.Conn.Write(sized(request)); err != nil {
		return nil, err
	}
	frame, err := l.frames.next(false)
	if err != nil {
		return nil, err
	}
	h, rest, err := jute.DecodeReplyHeader(frame[4:])
	switch {
	case err != nil:
		return nil, err
	case h.Code != jute.CodeOK:
		return nil, h.Code.Err()
	case h.Xid != xid:
		return nil, fmt.Errorf("wire: answer to request %d during a login", h.Xid)
	}
	var reply jute.Reply
	err = jute.DecodeReply(jute.OpSASL, rest, &reply)
	return reply.Data, err
}

// probe finds out whether the server serves this client at all: it accepts everybody's connect request, and closes the
// connection at the next request of a client without the login that it requires. The credentials go first.
func (l *link) probe() error {
	var frames []byte
	add := func(xid int32, op jute.Op, body []byte) {
		frame := jute.AppendRequestHeader(make([]byte, 4), jute.RequestHeader{Xid: xid, Op: op})
		frames = append(frames, sized(append(frame, body...))...)
	}
	l.c.mu.Lock()
	credentials := l.c.cfg.Auth
	l.c.mu.Unlock()
	for i := range credentials {
		add(jute.XidAuth, jute.OpAuth, jute.AppendAuth(nil, &credentials[i]))
	}
	l.authSent = len(credentials)
	add(jute.XidPing, jute.OpPing, nil)
	if _, err := l.Conn.Write(frames); err != nil {
		return err
	}
	for {
		frame, err := l.frames.next(false)
		if err != nil {
			return err
		}
		h, _, err := jute.DecodeReplyHeader(frame[4:])
		switch {
		case err != nil:
			return err
		case h.Code == jute.CodeSessionClosedRequireSASL:
			return ErrLoginRequired
		case h.Xid == jute.XidAuth && h.Code != jute.CodeOK:
			l.c.authFailed()
			return zk.ErrAuthFailed
		case h.Xid == jute.XidPing:
			return nil
		case h.Xid != jute.XidAuth:
			return fmt.Errorf("wire: answer to request %d before there was one", h.Xid)
		}
	}
}
