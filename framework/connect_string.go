package framework

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// connectString is the list of servers a client may talk to, and the path below which it lives on them.
type connectString struct {
	servers []string // host:port
	chroot  string   // "" for none
}

// parseConnectString reads "h1:2181,h2:2181/chroot"; its errors match [ErrBadArguments]. Java drops empty
// hosts and ignores bad ports; here they are errors, because they are mistakes that are hard to find later.
func parseConnectString(s string) (connectString, error) {
	result, err := parseServersAndChroot(strings.TrimSpace(s))
	if err != nil {
		return connectString{}, fmt.Errorf("%w: connect string %q: %w", ErrBadArguments, s, err)
	}
	return result, nil
}

func parseServersAndChroot(s string) (result connectString, err error) {
	if scheme, _, found := strings.Cut(s, "://"); found {
		return result, fmt.Errorf("servers are named without a scheme: %q", scheme+"://")
	}
	servers := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		servers = s[:i]
		if result.chroot, err = parseChroot(s[i:]); err != nil {
			return result, err
		}
	}
	for server := range strings.SplitSeq(servers, ",") {
		hostPort, err := parseServer(strings.TrimSpace(server))
		if err != nil {
			return result, err
		}
		result.servers = append(result.servers, hostPort)
	}
	return result, nil
}

// parseChroot reads "/chroot".
func parseChroot(s string) (string, error) {
	if isFollowedByServers(s) {
		return "", fmt.Errorf("chroot %q: a chroot stands once, behind the last server", s)
	}
	if err := zkpath.Validate(s, false); err != nil {
		return "", errtext.Wrap(err, "", "chroot")
	}
	return strings.TrimSuffix(s, "/"), nil // what is valid and ends with a slash is the root
}

// isFollowedByServers reports whether there is a server behind a comma in a chroot: one with a port, or with the chroot
// once more. Java takes it for a part of the name, and lives in another tree than was meant. Any other comma may be one
// of the name.
func isFollowedByServers(chroot string) bool {
	first, rest, _ := strings.Cut(chroot, ",")
	for part := range strings.SplitSeq(rest, ",") {
		server, path, _ := strings.Cut(strings.TrimSpace(part), "/")
		_, err := parseServer(server)
		if err == nil && (strings.Contains(server, ":") || "/"+path == first) {
			return true
		}
	}
	return false
}

// String is the inverse of parseConnectString.
func (c connectString) String() string {
	return strings.Join(c.servers, ",") + c.chroot
}

// equal reports whether both name the same servers in the same order, and the same chroot.
func (c connectString) equal(other connectString) bool {
	return c.chroot == other.chroot && slices.Equal(c.servers, other.servers)
}

// parseServer reads "host", "host:port", "[IPv6]" or "[IPv6]:port".
func parseServer(s string) (string, error) {
	if isSeveralServers(s) {
		return "", fmt.Errorf("server %q: bad host name: servers are separated by commas", s)
	}
	host, rest, err := cutHost(s)
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(zk.DefaultPort)
	if rest != "" {
		port = rest[1:]
	}
	return joinHostPort(host, port)
}

// isSeveralServers reports whether s is servers with something else than a comma between them.
func isSeveralServers(s string) bool {
	servers := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == ';' || r == '|' })
	if len(servers) < 2 {
		return false
	}
	return !slices.ContainsFunc(servers, func(server string) bool {
		_, err := parseServer(server)
		return err != nil
	})
}

// cutHost splits s behind the host, which is given without its brackets. What follows is "" or starts with a
// colon.
func cutHost(s string) (host, rest string, err error) {
	if !strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ':')
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], nil
	}
	host, rest, found := strings.Cut(s[1:], "]")
	if !found || rest != "" && rest[0] != ':' {
		return "", "", fmt.Errorf("server %q: bad brackets", s)
	}
	if address, err := netip.ParseAddr(host); err != nil || !address.Is6() {
		return "", "", fmt.Errorf("server %q: no IPv6 address in brackets", s)
	}
	return host, rest, nil
}

// joinHostPort checks both parts.
func joinHostPort(host, port string) (string, error) {
	if host == "" {
		return "", errors.New("empty server")
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsFunc(host, notInHostName) {
		return "", fmt.Errorf("server %q: bad host name", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		if strings.Contains(port, ":") && strings.Trim(host, "0123456789abcdefABCDEF") == "" {
			return "", fmt.Errorf("server %q: an IPv6 address needs brackets", host+":"+port)
		}
		return "", fmt.Errorf("server %q: bad port %q", host, port)
	}
	return net.JoinHostPort(host, port), nil
}

func notInHostName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	case r == '-', r == '.', r == '_': // an underscore is common where names come from containers
		return false
	}
	return r < 0x80 // other alphabets are the resolver's business
}
