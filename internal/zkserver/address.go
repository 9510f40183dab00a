package zkserver

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Address is the network address of a member.
type Address struct {
	Host         string // for the other members; and for clients, if ClientHost is a wildcard
	QuorumPort   int    // nothing listens on it: the members share the memory
	ElectionPort int    // likewise
	ClientHost   string // that it listens on
	ClientPort   int
}

// String returns the address as the configuration of an ensemble has it, behind "server.1=".
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
