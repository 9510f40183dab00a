package zkserver

import (
	"fmt"
	"net"
	"strconv"
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
