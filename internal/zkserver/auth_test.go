package zkserver

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		expr, addr string
		valid, in  bool
	}{
		{"127.0.0.1", "127.0.0.1", true, true},
		{"127.0.0.1", "127.0.0.2", true, false},
		{"127.0.0.0/8", "127.9.9.9", true, true},
		{"127.0.0.0/8", "128.0.0.1", true, false},
		{"10.1.2.3/31", "10.1.2.2", true, true},
		{"10.1.2.3/32", "10.1.2.2", true, false},
		{"0.0.0.0/0", "1.2.3.4", true, true},
		{"10.0.0.0/33", "10.0.0.0", false, false},
		{"10.0.0.0/-1", "10.0.0.0", false, false},
		{"10.0.0.0/x", "10.0.0.0", false, false},
		{"10.0.0", "10.0.0.0", false, false},
		{"10.0.0.256", "10.0.0.0", false, false},
		{"localhost", "127.0.0.1", false, false},
		{"", "127.0.0.1", false, false},
	} {
		if _, _, ok := parseIP(tt.expr); ok != tt.valid {
			t.Errorf("%q is valid: %t", tt.expr, ok)
		}
		if got := (identity{schemeIP, tt.addr}).matches(tt.expr); got != tt.in {
			t.Errorf("%s in %q: %t", tt.addr, tt.expr, got)
		}
	}
}

// In Java: DigestAuthenticationProvider.isValid, which splits as Java does.
func TestValidDigestID(t *testing.T) {
	for id, want := range map[string]bool{
		"u:h": true, ":h": true, "u:h:": true, "u": false, "u:": false, "": false, "u:h:x": false, ":": false,
	} {
		if got := (schemes{}).valid(zk.ACL{Scheme: schemeDigest, ID: id}); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}

// The digest is that of the ZooKeeper programmer's guide.
func TestDigest(t *testing.T) {
	if got := Digest("super:admin"); got != "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=" {
		t.Error(got)
	}
}
