package jute

import "fmt"

// PasswordSize is the length of every session password.
const PasswordSize = 16

var errNotConnect = fmt.Errorf("%w: not a connect response", ErrMarshalling)

// ConnectRequest opens a connection, for a new session (SessionID 0) or an old one.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeoutMs       int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool // the client is content with a server that lost its quorum
	HasReadOnly     bool // the byte of ReadOnly is there; go-zookeeper leaves it out
}

// AppendConnectRequest appends the record, without a request header as the handshake has none.
func AppendConnectRequest(b []byte, r *ConnectRequest) []byte {
	b = AppendInt32(b, r.ProtocolVersion)
	b = AppendInt64(b, r.LastZxidSeen)
	b = AppendInt32(b, r.TimeoutMs)
	b = AppendInt64(b, r.SessionID)
	b = AppendBuffer(b, r.Password)
	if r.HasReadOnly {
		b = AppendBool(b, r.ReadOnly)
	}
	return b
}

// DecodeConnectRequest reads the first frame a client sends.
func DecodeConnectRequest(frame []byte) (ConnectRequest, error) {
	d := NewDecoder(frame)
	r := ConnectRequest{
		ProtocolVersion: d.Int32(),
		LastZxidSeen:    d.Int64(),
		TimeoutMs:       d.Int32(),
		SessionID:       d.Int64(),
		Password:        d.Buffer(),
	}
	if d.Len() > 0 {
		r.ReadOnly, r.HasReadOnly = d.Bool(), true
	}
	if d.err != nil {
		return ConnectRequest{}, d.err
	}
	return r, nil
}

// ConnectResponse is the server's answer to a [ConnectRequest]. A TimeoutMs of 0 means the session asked for
// is gone.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMs       int32
	SessionID       int64
	Password        []byte // PasswordSize bytes
	ReadOnly        bool   // the server lost its quorum
	HasReadOnly     bool   // the byte of ReadOnly is there; servers leave it out for clients that did
}

// AppendConnectResponse appends the record, 36 bytes or 37 with the byte of ReadOnly.
func AppendConnectResponse(b []byte, r *ConnectResponse) []byte {
	b = AppendInt32(b, r.ProtocolVersion)
	b = AppendInt32(b, r.TimeoutMs)
	b = AppendInt64(b, r.SessionID)
	b = AppendBuffer(b, r.Password)
	if r.HasReadOnly {
		b = AppendBool(b, r.ReadOnly)
	}
	return b
}

// DecodeConnectResponse reads the first frame a server sends. It takes nothing but a connect response: a
// server may send an error frame in its place, and to read that as a session would be worse than to fail.
func DecodeConnectResponse(frame []byte) (ConnectResponse, error) {
	d := NewDecoder(frame)
	r := ConnectResponse{
		ProtocolVersion: d.Int32(),
		TimeoutMs:       d.Int32(),
		SessionID:       d.Int64(),
		Password:        d.Buffer(),
	}
	if d.Len() > 0 {
		r.ReadOnly, r.HasReadOnly = d.Bool(), true
	}
	if d.err != nil {
		return ConnectResponse{}, d.err
	}
	if d.Len() > 0 || r.ProtocolVersion != 0 || r.TimeoutMs < 0 || len(r.Password) != PasswordSize {
		return ConnectResponse{}, errNotConnect
	}
	return r, nil
}
