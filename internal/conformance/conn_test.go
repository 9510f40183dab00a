package conformance_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// answerLimit bounds the wait for one frame.
const answerLimit = 10 * time.Second

// conn speaks the protocol in frames.
type conn struct {
	net.Conn
	session  int64
	password []byte
	timeout  time.Duration
	xid      int32
}

// dial opens a connection without a handshake.
func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, answerLimit)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// open opens a connection for a session, a new one if session is 0.
func open(addr string, session int64, password []byte) (*conn, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	answer, err := c.handshake(jute.ConnectRequest{
		TimeoutMs:   int32(sessionTimeout.Milliseconds()),
		SessionID:   session,
		Password:    password,
		HasReadOnly: true,
	})
	if err == nil && answer.SessionID == 0 {
		err = errors.New("the session is gone")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// sessionTimeout outlasts a sequence.
const sessionTimeout = time.Minute

func (c *conn) handshake(r jute.ConnectRequest) (jute.ConnectResponse, error) {
	if r.Password == nil {
		r.Password = make([]byte, jute.PasswordSize)
	}
	if err := c.writeFrame(jute.AppendConnectRequest(nil, &r)); err != nil {
		return jute.ConnectResponse{}, err
	}
	frame, err := c.readFrame()
	if err != nil {
		return jute.ConnectResponse{}, err
	}
	answer, err := jute.DecodeConnectResponse(frame)
	c.session, c.password = answer.SessionID, answer.Password
	c.timeout = time.Duration(answer.TimeoutMs) * time.Millisecond
	return answer, err
}

// frame makes a frame of a body.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func (c *conn) writeFrame(body []byte) error {
	_, err := c.Write(frame(body))
	return err
}

// maxFrame is more than a test has a server answer.
const maxFrame = 16 << 20

func (c *conn) readFrame() ([]byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}

// encode returns the frame of a request and its xid.
func (c *conn) encode(op jute.Op, body []byte) ([]byte, int32) {
	xid := jute.XidPing
	switch op {
	case jute.OpPing:
	case jute.OpAuth:
		xid = jute.XidAuth
	case jute.OpSetWatches, jute.OpSetWatches2:
		xid = jute.XidSetWatches
	default:
		c.xid++
		xid = c.xid
	}
	return frame(append(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: xid, Op: op}), body...)), xid
}

// answer is a frame of a server: a reply or, with the xid of notifications, an event.
type answer struct {
	jute.ReplyHeader
	body []byte
}

func (c *conn) readAnswer() (answer, error) {
	f, err := c.readFrame()
	if err != nil {
		return answer{}, err
	}
	h, body, err := jute.DecodeReplyHeader(f)
	return answer{h, body}, err
}

// readText reads until the server ends the connection.
func readText(c *conn) (string, error) {
	b, err := io.ReadAll(c)
	return string(b), err
}
