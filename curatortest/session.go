package curatortest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/zkserver"
)

// ExpireSession ends a session on the server at addr, or on any server of its ensemble. It returns when the ephemeral
// nodes of the session are gone. The server closes the connection of the client, which finds the session expired when
// it reconnects. The error wraps [zk.ErrSessionExpired] if there is no such session.
func ExpireSession(ctx context.Context, addr string, sessionID int64) error {
	return expireSession(ctx, addr, sessionID, account{})
}

// KillSession is [ExpireSession]. In Java: KillSession, which is the same for the client, but leaves the session on the
// server: there the ephemeral nodes stay until the session times out, as with [Faults.KillSession].
func KillSession(ctx context.Context, addr string, sessionID int64) error {
	return ExpireSession(ctx, addr, sessionID)
}

// DropConnection makes the server at addr close the connection of a session, and returns after that. The session lives
// on if its client comes back in time. If the client is not connected to this server nothing happens.
func DropConnection(ctx context.Context, addr string, sessionID int64) error {
	// A server closes the connection of a session when another one requests that session, and checks the other's password
	// only then.
	wrong := zkserver.Password(sessionID)
	for i := range wrong {
		wrong[i] = ^wrong[i]
	}
	s, err := dialSession(ctx, addr)
	if err == nil {
		defer s.close()
		err = s.handshake(sessionID, wrong)
	}
	switch {
	case err == nil, errors.Is(err, zk.ErrSessionExpired): // a server also answers a wrong password so
		return nil
	case ctx.Err() != nil: // this call has ended the connection itself
		err = errors.Join(ctx.Err(), err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		// The client has requested its session again, and the server has closed this connection for it.
		return nil
	}
	return fmt.Errorf("curatortest: drop connection of session %#x: %w", sessionID, err)
}

// sessionLimit bounds the methods that take no context.
const sessionLimit = 15 * time.Second

// ExpireSession ends a session as the function [ExpireSession] does.
func (s *RealServer) ExpireSession(sessionID int64) error {
	return onSession(s.expireSession, sessionID)
}

// KillSession is ExpireSession, see the function [KillSession].
func (s *RealServer) KillSession(sessionID int64) error {
	return onSession(s.expireSession, sessionID)
}

// DropConnection closes the connection of a session as the function [DropConnection] does.
func (s *RealServer) DropConnection(sessionID int64) error {
	return onSession(func(ctx context.Context, id int64) error { return DropConnection(ctx, s.Addr(), id) }, sessionID)
}

func (s *RealServer) expireSession(ctx context.Context, sessionID int64) error {
	return expireSession(ctx, s.Addr(), sessionID, s.account())
}

func onSession(do func(context.Context, int64) error, sessionID int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionLimit)
	defer cancel()
	return do(ctx, sessionID)
}

func expireSession(ctx context.Context, addr string, sessionID int64, who account) error {
	err := tryExpireSession(ctx, addr, sessionID, who)
	if err != nil {
		return fmt.Errorf("curatortest: expire session %#x: %w", sessionID, err)
	}
	return nil
}

func tryExpireSession(ctx context.Context, addr string, sessionID int64, who account) error {
	password := zkserver.Password(sessionID)
	requested := false // the end of the session
	for {
		s, err := dialSession(ctx, addr)
		if err != nil {
			return err
		}
		if err = s.handshake(sessionID, password); err == nil {
			if err = s.identify(ctx, who); err == nil {
				requested = true
				err = s.closeSession()
			}
		}
		s.close()
		switch {
		case err == nil:
			// The client may have taken the session back just before the end. The server does not close that connection by
			// itself: the client would take its session for alive until the connection is idle for too long.
			return DropConnection(ctx, addr, sessionID)
		case errors.Is(err, zk.ErrSessionExpired):
			if requested { // an earlier try, whose answer was lost, has ended it
				return nil
			}
			return err
		case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, jute.ErrSessionClosedRequireSASL):
			return err
		}
		// The client has taken its session back before it could be ended: try again.
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(sessionRetry):
		}
	}
}

// sessionRetry is the pause before the next try.
const sessionRetry = 5 * time.Millisecond

// sessionConn is a connection to a server that takes over a session.
type sessionConn struct {
	net.Conn
	stop func() bool
	xid  int32
}

func dialSession(ctx context.Context, addr string) (*sessionConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &sessionConn{Conn: c, stop: context.AfterFunc(ctx, func() { _ = c.Close() })}, nil
}

func (s *sessionConn) close() {
	s.stop()
	_ = s.Close() // all requests have been answered
}

// sessionTimeout is the timeout of the session, if it cannot be ended.
const sessionTimeout = 30 * time.Second

func (s *sessionConn) handshake(sessionID int64, password []byte) error {
	frame, err := s.roundTrip(jute.AppendConnectRequest(nil, &jute.ConnectRequest{
		SessionID: sessionID,
		Password:  password,
		TimeoutMs: int32(sessionTimeout.Milliseconds()),
	}))
	if err != nil {
		return err
	}
	answer, err := jute.DecodeConnectResponse(frame)
	if err != nil {
		return err
	}
	if answer.TimeoutMs == 0 || sessionID != 0 && answer.SessionID != sessionID {
		return zk.ErrSessionExpired
	}
	return nil
}

func (s *sessionConn) closeSession() error {
	_, err := s.request(&jute.Request{Op: jute.OpCloseSession})
	return err
}

// request sends a request and returns its answer, or the error of its code.
func (s *sessionConn) request(r *jute.Request) (jute.Reply, error) {
	s.xid++
	var reply jute.Reply
	body, err := s.answer(jute.AppendRequest(jute.AppendRequestHeader(nil,
		jute.RequestHeader{Xid: s.xid, Op: r.Op}), "", r))
	if err == nil {
		err = jute.DecodeReply(r.Op, body, &reply)
	}
	return reply, err
}

// answer returns the body of the answer to a frame, or the error of its code.
func (s *sessionConn) answer(frame []byte) ([]byte, error) {
	answer, err := s.roundTrip(frame)
	if err != nil {
		return nil, err
	}
	h, body, err := jute.DecodeReplyHeader(answer)
	if err == nil {
		err = h.Code.Err()
	}
	return body, err
}

// maxAnswer bounds an answer.
const maxAnswer = 64 << 20

func (s *sessionConn) roundTrip(body []byte) ([]byte, error) {
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := s.Write(frame); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(s, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxAnswer {
		return nil, fmt.Errorf("answer of %d bytes", n)
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(s, answer)
	return answer, err
}
