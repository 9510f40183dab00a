package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// limit is the name of the loop that no client of the null server can beat: it writes prepared requests and reads the
// bytes of their answers. It makes no request, finds no caller for an answer and decodes nothing.
const limit = "the limit"

// limitClient is a go-zookeeper client whose many operations are that loop, on a connection of its own.
type limitClient struct {
	client
	addr string
}

func openLimit(connect string) (client, error) {
	c, err := openPlain(connect)
	return limitClient{c, connect}, err
}

// createMany creates one node again and again, which a null server allows. Its name has the length of most names.
func (c limitClient) createMany(
	ctx context.Context, window int, s *scratch, data []byte, stop *atomic.Bool,
) tally {
	return c.repeat(ctx, window, stop, &jute.Request{
		Op: jute.OpCreate2, Path: s.parent + "/0-1000000", Data: data, ACL: zk.WorldACL(zk.PermAll),
	})
}

func (c limitClient) getMany(ctx context.Context, window int, path string, stop *atomic.Bool) tally {
	return c.repeat(ctx, window, stop, &jute.Request{Op: jute.OpGetData, Path: path})
}

// repeat keeps a window of requests in flight until stop is set.
func (c limitClient) repeat(ctx context.Context, window int, stop *atomic.Bool, r *jute.Request) (t tally) {
	l, err := dialLoop(ctx, c.addr, r)
	if err != nil {
		t.fail(err)
		return t
	}
	defer l.close()
	half := max(window/2, 1)
	for err = l.write(half); err == nil && !stop.Load(); t.ops += int64(half) {
		err = errors.Join(l.write(half), l.read(half))
	}
	if err = errors.Join(err, l.read(half)); err != nil {
		t.fail(err)
	}
	t.ops += int64(half)
	return t
}

// bareLoop is a connection on which all requests are the same, and all answers have the same length.
type bareLoop struct {
	conn    net.Conn
	in      *bufio.Reader
	unwatch func() bool
	request []byte
	answer  int // the length of its frame
	frames  []byte
}

// dialLoop connects, and sends the request once. When ctx ends, so does the connection.
func dialLoop(ctx context.Context, addr string, r *jute.Request) (l *bareLoop, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l = &bareLoop{conn: conn, in: bufio.NewReaderSize(conn, 256<<10)}
	l.unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	hello := jute.AppendConnectRequest(nil, &jute.ConnectRequest{
		TimeoutMs: int32(sessionTimeout.Milliseconds()), Password: make([]byte, jute.PasswordSize),
	})
	if _, err := l.call(frameOf(hello)); err != nil {
		return nil, err
	}
	l.request = frameOf(jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: 1, Op: r.Op}), "", r))
	answer, err := l.call(l.request)
	if err != nil {
		return nil, err
	}
	l.answer = len(frameOf(answer))
	h, _, err := jute.DecodeReplyHeader(answer)
	if err == nil && h.Code != jute.CodeOK {
		err = fmt.Errorf("%s of %s: %v", r.Op, r.Path, h.Code)
	}
	return l, err
}

// frameOf returns b with its length in front.
func frameOf(b []byte) []byte { return jute.AppendBuffer(nil, b) }

// call writes a frame, and returns the next one without its length.
func (l *bareLoop) call(frame []byte) ([]byte, error) {
	if _, err := l.conn.Write(frame); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(l.in, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(l.in, answer)
	return answer, err
}

func (l *bareLoop) write(n int) error {
	for len(l.frames) < n*len(l.request) {
		l.frames = append(l.frames, l.request...)
	}
	_, err := l.conn.Write(l.frames[:n*len(l.request)])
	return err
}

// read reads n answers.
func (l *bareLoop) read(n int) error {
	_, err := l.in.Discard(n * l.answer)
	return err
}

func (l *bareLoop) close() {
	l.unwatch()
	_ = l.conn.Close()
}
