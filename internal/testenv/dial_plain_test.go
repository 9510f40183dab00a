package testenv

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// A server that never answers a handshake holds up the end of a test no longer than any other wait.
func TestPlainHandshakeThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		received := make(chan error, 1)
		conn, events, err := zk.Connect([]string{"127.0.0.1:1"}, 30*time.Second, zk.WithLogger(silent{}),
			zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					_, err := io.Copy(io.Discard, theirs)
					received <- err
				}()
				return plainConn{ours}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the handshake is sent
		began := time.Now()
		conn.Close()
		for range events {
			continue // until its goroutines have ended
		}
		if d := time.Since(began); d > patience+time.Second {
			t.Errorf("it has waited %v", d)
		}
		if err := <-received; err != nil {
			t.Error(err)
		}
	})
}
