package discovery

import (
	"fmt"
	"net"
)

// LocalAddresses returns the addresses of this machine at which others may reach it: neither loopback addresses nor,
// except of point-to-point interfaces, link-local ones. An instance has one address: choose with care on a machine that
// has several, as one with containers. In Java: ServiceInstanceBuilder.getAllLocalIPs with the default LocalIpFilter,
// whose first address is that of an instance without another.
func LocalAddresses() ([]net.IP, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var ips []net.IP
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("discovery: addresses of %s: %w", i.Name, err)
		}
		for _, address := range addresses {
			if of, ok := address.(*net.IPNet); ok && isReachable(of.IP, i.Flags) {
				ips = append(ips, of.IP)
			}
		}
	}
	return ips, nil
}

// isReachable reports whether others may reach an address of an interface. In Java: LocalIpFilter.use.
func isReachable(ip net.IP, flags net.Flags) bool {
	return !ip.IsLoopback() && (flags&net.FlagPointToPoint != 0 || !ip.IsLinkLocalUnicast())
}
