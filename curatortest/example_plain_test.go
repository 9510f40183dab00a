package curatortest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

// A program that uses go-zookeeper without this library, on a server that listens on no port. The address needs no name
// server, so that it works within a bubble of testing/synctest too.
func ExampleServer_DialTimeout() {
	server, err := curatortest.NewServer(curatortest.WithoutPort())
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the end of the program
	conn, events, err := zk.Connect([]string{server.Addr()}, 10*time.Second,
		zk.WithDialer(server.DialTimeout), zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		conn.Close()
		for range events { // until its goroutines have ended
		}
	}()

	path, err := conn.Create("/n", []byte("x"), 0, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err, server.Children("/"))

	// Output:
	// /n <nil> [n zookeeper]
}
