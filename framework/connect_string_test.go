package framework

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
)

func TestParseConnectString(t *testing.T) {
	tests := []struct {
		name       string
		s          string
		want       []string
		wantChroot string
	}{
		{"one server", "h1:2181", []string{"h1:2181"}, ""},
		{"default port", "h1", []string{"h1:2181"}, ""},
		{"several", "h1:2181,h2:2182,h3", []string{"h1:2181", "h2:2182", "h3:2181"}, ""},
		{"chroot", "h1:2181,h2:2181/chroot", []string{"h1:2181", "h2:2181"}, "/chroot"},
		{"deep chroot", "h1/a/b", []string{"h1:2181"}, "/a/b"},
		{"comma in chroot", "h1/a,b/c,", []string{"h1:2181"}, "/a,b/c,"},
		{"colon in chroot", "h1/a:1/b", []string{"h1:2181"}, "/a:1/b"},
		{"root as chroot", "h1:2181/", []string{"h1:2181"}, ""},
		{"blanks", " h1:2181 ,\th2 /chroot\n", []string{"h1:2181", "h2:2181"}, "/chroot"},
		{"IPv4", "10.1.2.3:2181", []string{"10.1.2.3:2181"}, ""},
		{"IPv6", "[2001:db8::1]:2182,[::1]/a", []string{"[2001:db8::1]:2182", "[::1]:2181"}, "/a"},
		{"IPv6 with a zone", "[fe80::1%eth0]:2181", []string{"[fe80::1%eth0]:2181"}, ""},
		{"container", "zoo_1.my-net.local.:2181", []string{"zoo_1.my-net.local.:2181"}, ""},
		{"other alphabet", "größe.example:2181", []string{"größe.example:2181"}, ""},
		{"last port", "h1:65535", []string{"h1:65535"}, ""},
		{"the same twice", "h1,h1", []string{"h1:2181", "h1:2181"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseConnectString(tt.s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.servers); diff != "" || got.chroot != tt.wantChroot {
				t.Errorf("chroot %q, want %q, servers (-want +got):\n%s", got.chroot, tt.wantChroot, diff)
			}
			again, err := parseConnectString(got.String())
			if err != nil || !again.equal(got) {
				t.Errorf("parseConnectString(%q) = %v, %v, want the same", got, again, err)
			}
		})
	}
}

func TestParseConnectStringInvalid(t *testing.T) {
	tests := []struct {
		name string
		s    string
		want string // part of the error
	}{
		{"empty", "", "empty server"},
		{"blank", "  ", "empty server"},
		{"only a chroot", "/a", "empty server"},
		{"only commas", ",", "empty server"},
		{"empty server", "h1,,h2", "empty server"},
		{"comma at the end", "h1:2181,", "empty server"},
		{"comma before the chroot", "h1,/a", "empty server"},
		{"no host", ":2181", "empty server"},
		{"no port", "h1:", `bad port ""`},
		{"port 0", "h1:0", `bad port "0"`},
		{"port too high", "h1:65536", `bad port "65536"`},
		{"port far too high", "h1:99999999999999999999", "bad port"},
		{"negative port", "h1:-1", `bad port "-1"`},
		{"signed port", "h1:+2181", `bad port "+2181"`},
		{"port with a blank", "h1: 2181", `bad port " 2181"`},
		{"name as port", "h1:zookeeper", `bad port "zookeeper"`},
		{"semicolon", "h1:2181;h2:2181", "separated by commas"},
		{"semicolon with nothing behind it", "h1:2181;", `bad port "2181;"`},
		{"semicolons and commas", "h1:2181,h2:2181;[::1]:2181", "separated by commas"},
		{"blank between", "h1 h2", "separated by commas"},
		{"user", "me@h1", "bad host name"},
		{"IPv6 without brackets", "2001:db8::1", "needs brackets"},
		{"IPv6 without brackets, with colons in front", "::1", `"::1": an IPv6 address needs brackets`},
		{"IPv6 without brackets, with colons in front and a port", "::1:2181", "needs brackets"},
		{"IPv6 without brackets, of an IPv4 address", "h1,::ffff:10.1.2.3/a", "needs brackets"},
		{"IPv6 without brackets, with a zone", "fe80::1%eth0", "needs brackets"},
		{"colon in front of a server", ":h1:2181", "empty server"},
		{"byte order mark", "\ufeffh1:2181", "bad host name"},
		{"byte order mark in front of an address", "h1,\ufeff10.1.2.3:2181", "bad host name"},
		{"zero-width space", "h1\u200b:2181", "bad host name"},
		{"zero-width joiner", "h\u200d1", "bad host name"},
		{"soft hyphen", "h\u00ad1", "bad host name"},
		{"no-break space", "h\u00a01", "bad host name"},
		{"no UTF-8", "h\xff1", "bad host name"},
		{"zero-width space in a zone", "[fe80::1%eth0\u200b]", "bad host name"},
		{"open bracket", "[::1", "bad brackets"},
		{"text behind the bracket", "[::1]2181", "bad brackets"},
		{"port missing behind the bracket", "[::1]:", "bad port"},
		{"closing bracket", "2001::1]:2181", "needs brackets"},
		{"IPv4 in brackets", "[10.1.2.3]:2181", "no IPv6 address"},
		{"name in brackets", "[h1]:2181", "no IPv6 address"},
		{"nothing in brackets", "[]:2181", "no IPv6 address"},
		{"slash at the end", "h1/a/", "chroot"},
		{"empty name in chroot", "h1//a", "chroot"},
		{"relative chroot", "h1/a/../b", "chroot"},
		{"URL", "zk://h1:2181/a", "without a scheme"},
		{"chroot in the middle", "h1:2181/a,h2:2181", "behind the last server"},
		{"chroot behind each server", "h1/a,h2/a", "behind the last server"},
		{"chroot in the middle, IPv6", "[::1]:2181/a,[::2]:2181", "behind the last server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseConnectString(tt.s)
			if !errors.Is(err, ErrBadArguments) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("parseConnectString(%q) = %v, %v, want an error with %q", tt.s, got, err, tt.want)
			}
			if len(got.servers) > 0 || got.chroot != "" {
				t.Errorf("parseConnectString(%q) = %v beside the error", tt.s, got)
			}
		})
	}
	if _, err := parseConnectString("h1//a"); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("bad chroot: %v, want zk.ErrInvalidPath", err)
	}
}

func TestConnectStringEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"h1,h2:2181/a", "h1:2181, h2/a", true},
		{"h1,h2", "h2,h1", false},
		{"h1,h2", "h1", false},
		{"h1/a", "h1/b", false},
		{"h1/", "h1", true},
	}
	for _, tt := range tests {
		a, errA := parseConnectString(tt.a)
		b, errB := parseConnectString(tt.b)
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if got := a.equal(b); got != tt.want {
			t.Errorf("%q equals %q: %t", tt.a, tt.b, got)
		}
	}
}

func FuzzParseConnectString(f *testing.F) {
	for _, s := range []string{
		"", "h1", "h1:2181,h2/a", "[::1]:2181", "[fe80::1%eth0]", ":,/", "[", "h1:0", " h1 /a ", "h1/a,b", "h1/a,h2:1",
		"h1;h2", "h1/ ,b", "zk://h1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseConnectString(s)
		if err != nil {
			if !errors.Is(err, ErrBadArguments) {
				t.Fatal(err)
			}
			return
		}
		again, err := parseConnectString(c.String())
		if err != nil || !again.equal(c) {
			t.Errorf("parseConnectString(%q) = %q, and of that %q, %v", s, c, again, err)
		}
	})
}
