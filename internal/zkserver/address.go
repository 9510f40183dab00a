package zkserver

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Address is the network address of a member.
type Address struct {
	Host         string // host for the other members, and for clients if ClientHost is a wildcard
	QuorumPort   int    // nothing listens on this port: the members share their memory
	ElectionPort int    // nothing listens on this port either
	ClientHost   string // host of the client port
	ClientPort   int
}

// String returns the address as it stands in the configuration of an ensemble after "server.1=".
func (a *Address) String() string {
	return fmt.Sprintf("%s:%d:participant;%s",
		net.JoinHostPort(a.Host, strconv.Itoa(a.QuorumPort)), a.ElectionPort,
		net.JoinHostPort(a.ClientHost, strconv.Itoa(a.ClientPort)))
}

// membership returns the text of /zookeeper/config. It is empty for a standalone server, as in Apache ZooKeeper.
func (c *Config) membership() []byte {
	if c.standalone() {
		return nil
	}
	var b strings.Builder
	for i := range c.Addresses {
		fmt.Fprintf(&b, "server.%d=%s\n", i+1, &c.Addresses[i])
	}
	b.WriteString("version=0")
	return []byte(b.String())
}
