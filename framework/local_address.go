package framework

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lookupTimeout bounds the lookup, for which the first create without data waits.
const lookupTimeout = time.Second

// localAddress returns the text of this host's IP address, which is the default data of nodes, or an empty slice if
// there is no address. The result is shared: do not change it. In Java: InetAddress.getLocalHost().getHostAddress().
var localAddress = sync.OnceValue(func() []byte {
	host, err := os.Hostname()
	if err != nil {
		return []byte{}
	}
	//nolint:forbidigo // the result is shared: the context of one caller must not end the lookup
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return []byte{}
	}
	return []byte(chooseAddress(addresses))
})

// chooseAddress returns the first IPv4 address, or else the first one, as Java writes it.
func chooseAddress(addresses []netip.Addr) string {
	var chosen netip.Addr
	for _, a := range addresses {
		if a = a.Unmap(); a.Is4() {
			return a.String()
		}
		if !chosen.IsValid() {
			chosen = a
		}
	}
	if !chosen.IsValid() {
		return ""
	}
	// Java does not abbreviate zeros.
	groups := make([]string, 0, 8)
	for b := chosen.As16(); len(groups) < 8; {
		i := 2 * len(groups)
		groups = append(groups, strconv.FormatUint(uint64(b[i])<<8|uint64(b[i+1]), 16))
	}
	text := strings.Join(groups, ":")
	if zone := chosen.Zone(); zone != "" {
		text += "%" + zone
	}
	return text
}
