package testenv

import (
	"net"
	"time"
)

// patience is how long a connection of the plain library waits for a server.
const patience = 20 * time.Second

// DialPlain dials for the plain library. It dials twice: a server with very many new connections may accept only the
// second time; the library would wait for a second, and fail all requests meanwhile.
func DialPlain(network, address string, _ time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return nil, err
	}
	return plainConn{conn}, nil
}

// plainConn waits for an answer to the handshake as for any other; the library waits ten times as long. Sequence: Apache
// ZooKeeper starts, a client connects again before the server has its database, the server fails as it closes that
// connection, which then stays open without an answer.
type plainConn struct{ net.Conn }

// SetReadDeadline sets no later deadline than patience from now.
func (c plainConn) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(patience); t.After(most) {
		t = most
	}
	return c.Conn.SetReadDeadline(t)
}
