package discovery

import (
	"net"
	"testing"
)

func TestLocalAddressesAreThoseThatOthersReach(t *testing.T) {
	for _, tt := range []struct {
		address string
		flags   net.Flags
		want    bool
	}{
		{"10.0.0.1", net.FlagUp, true},
		{"2001:db8::1", net.FlagUp, true},
		{"127.0.0.1", net.FlagUp | net.FlagLoopback, false},
		{"127.0.0.2", net.FlagUp | net.FlagPointToPoint, false},
		{"::1", net.FlagUp | net.FlagLoopback, false},
		{"169.254.1.1", net.FlagUp, false},
		{"fe80::1", net.FlagUp, false},
		{"fe80::1", net.FlagUp | net.FlagPointToPoint, true},
	} {
		if got := isReachable(net.ParseIP(tt.address), tt.flags); got != tt.want {
			t.Errorf("%s of an interface that is %v: %v", tt.address, tt.flags, got)
		}
	}
	ips, err := LocalAddresses()
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range ips {
		if ip.IsLoopback() || ip.IsUnspecified() {
			t.Errorf("%v", ip)
		}
	}
}
