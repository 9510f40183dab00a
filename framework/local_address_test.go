package framework

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

func TestLocalAddress(t *testing.T) {
	got := string(localAddress())
	if got == "" { // only where the name of the host says nothing
		host, err := os.Hostname()
		if err != nil {
			return
		}
		if addresses, err := net.LookupHost(host); err == nil {
			t.Errorf("nothing, and %s is at %v", host, addresses)
		}
		return
	}
	if a, err := netip.ParseAddr(got); err != nil || a.IsUnspecified() {
		t.Errorf("localAddress() = %q: %v", got, err)
	}
	if again := string(localAddress()); again != got {
		t.Errorf("localAddress() = %q, before it was %q", again, got)
	}
}

func TestChooseAddress(t *testing.T) {
	tests := []struct {
		name      string
		addresses []string
		want      string
	}{
		{"none", nil, ""},
		{"IPv4", []string{"127.0.1.1"}, "127.0.1.1"},
		{"the first", []string{"10.1.2.3", "10.1.2.4"}, "10.1.2.3"},
		{"IPv4 before IPv6", []string{"2001:db8::1", "10.1.2.3"}, "10.1.2.3"},
		{"mapped", []string{"::ffff:10.1.2.3"}, "10.1.2.3"},
		{"IPv6 as in Java", []string{"2001:db8::8a2e:370:7334", "::1"}, "2001:db8:0:0:0:8a2e:370:7334"},
		{"loopback", []string{"::1"}, "0:0:0:0:0:0:0:1"},
		{"zone", []string{"fe80::1%eth0"}, "fe80:0:0:0:0:0:0:1%eth0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var addresses []netip.Addr
			for _, a := range tt.addresses {
				addresses = append(addresses, netip.MustParseAddr(a))
			}
			if got := chooseAddress(addresses); got != tt.want {
				t.Errorf("chooseAddress(%v) = %q, want %q", addresses, got, tt.want)
			}
		})
	}
}
