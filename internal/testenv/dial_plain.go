package testenv

import (
	"net"
	"time"
)

// patience is how long a connection of the plain library waits for a server.
const patience = 20 * time.Second

// DialPlain dials for the plain library, which itself gives up after a second and fails all requests: a server with
// very many new connections may accept one only when the system has tried a second time.
func DialPlain(network, address string, _ time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return nil, err
	}
	return plainConn{conn}, nil
}

// plainConn waits for the answer to a handshake as for any other; the library waits ten times as long. Sequence: Apache
// ZooKeeper starts, a client connects again before the server has its database, the server fails as it closes that
// connection, which stays open, and is never answered.
type plainConn struct{ net.Conn }

// SetReadDeadline sets no later deadline than patience from now.
func (c plainConn) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(patience); t.After(most) {
		t = most
	}
	return c.Conn.SetReadDeadline(t)
}
