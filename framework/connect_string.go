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
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// connectString is the list of servers of a client and the path below which it works.
type connectString struct {
	servers []string // host:port
	chroot  string   // "" means none
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
	return strings.TrimSuffix(s, "/"), nil // the only valid path that ends with a slash is the root
}

// isFollowedByServers reports whether a chroot has a server behind a comma: a name with a port, or with the same
// chroot. Java takes it for a part of the chroot and works below a path that nobody meant. Any other comma may belong
// to the path.
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

// isSeveralServers reports whether s is a list of servers with another separator than a comma.
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

// cutHost splits s behind the host. It returns the host without brackets; rest is "" or starts with a colon.
func cutHost(s string) (host, rest string, err error) {
	if address, err := netip.ParseAddr(s); err == nil && address.Is6() {
		return "", "", needsBrackets(s)
	}
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

// joinHostPort checks both parts and joins them.
func joinHostPort(host, port string) (string, error) {
	if host == "" {
		return "", errors.New("empty server")
	}
	name := host
	if address, err := netip.ParseAddr(host); err == nil {
		name = address.Zone()
	}
	if strings.ContainsFunc(name, notInHostName) {
		return "", fmt.Errorf("server %q: bad host name", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		if strings.Contains(port, ":") && strings.Trim(host, "0123456789abcdefABCDEF") == "" {
			return "", needsBrackets(host + ":" + port)
		}
		return "", fmt.Errorf("server %q: bad port %q", host, port)
	}
	return net.JoinHostPort(host, port), nil
}

func needsBrackets(server string) error {
	return fmt.Errorf("server %q: an IPv6 address needs brackets", server)
}

// notInHostName reports whether r cannot be part of a host name. Letters of other alphabets are left to the resolver.
// Invisible characters, such as a byte order mark, are refused, because such mistakes are hard to find.
func notInHostName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	case r == '-', r == '.', r == '_': // an underscore is common where names come from containers
		return false
	}
	return r < 0x80 || r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r)
}
