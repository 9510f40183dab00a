package curatortest_test

import (
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

// The server creates the node, but its client learns only that the connection is lost.
func ExampleProxy() {
	server, err := curatortest.NewServer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	proxy, err := curatortest.NewProxy(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()

	lost := proxy.Faults().Add(curatortest.Rule{
		Ops:    []string{"create"},
		Path:   "/orders/**",
		Count:  1,
		Action: curatortest.CutAfter,
	})

	quiet := zk.WithLogger(log.New(io.Discard, "", 0))
	client, events, err := zk.Connect([]string{proxy.Addr()}, 10*time.Second, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	connected := func() {
		for ev := range events {
			if ev.State == zk.StateHasSession {
				return
			}
		}
	}
	connected()
	anyone := zk.WorldACL(zk.PermAll)
	_, err = client.Create("/orders", nil, 0, anyone)
	fmt.Println("parent:", err)
	_, err = client.Create("/orders/1", nil, 0, anyone)
	fmt.Println("node:", err)
	connected() // again
	_, err = client.Create("/orders/1", nil, 0, anyone)
	fmt.Println("again:", err)
	fmt.Println("hits:", lost.Hits())
	// Output:
	// parent: <nil>
	// node: zk: connection closed
	// again: zk: node already exists
	// hits: 1
}
