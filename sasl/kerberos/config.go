package kerberos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// config is what a krb5.conf says that matters here. The parser of gokrb5 is not used: it reads less of the format, and
// here a file that cannot be read is an error, and the process goes on.
type config struct {
	defaultRealm   string
	dnsLookupKDC   bool
	clockSkew      time.Duration
	ticketLifetime time.Duration
	ticketTypes    []int32 // encryption types of the first ticket
	serviceTypes   []int32 // encryption types of the tickets for servers
	kdcs           map[string][]string
	realms         map[string]string // of hosts, and of domains that begin with a dot
}

// maxFile bounds the files that are read, and maxIncludes how deep they include each other.
const (
	maxFile     = 1 << 20
	maxIncludes = 10
)

// defaultConfigFile is where all systems have it.
const defaultConfigFile = "/etc/krb5.conf"

// aesTypes are the encryption types whose tokens RFC 4121 describes. Those of older types differ, and gokrb5 does not
// know them.
var aesTypes = []int32{
	etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96,
	etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128,
}

// readConfig reads files like krb5.conf. Of a value that is there twice the first counts. A file that is not there is
// an error unless it is optional.
func readConfig(files []string, optional bool) (*config, error) {
	p := &profile{}
	for _, file := range files {
		if _, err := os.Stat(file); optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := p.read(file, 0); err != nil {
			return nil, err
		}
	}
	return p.config()
}

// readFile reads a file that is not too large.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = &os.PathError{Op: "read", Path: file, Err: errTooLarge}
	}
	return b, err
}

var errTooLarge = errors.New("more than 1 MiB")

// profile is the format of the file: sections of names with values, which may be nested in braces.
type profile struct {
	relations []relation
	files     int
}

// relation is a name with its value. The path is the section and the names of the braces around it, and the name.
type relation struct {
	path  []string
	value string
}

func (p *profile) read(file string, depth int) error {
	text, err := readFile(file)
	if err != nil {
		return err
	}
	if p.files++; depth > maxIncludes || p.files > 1000 {
		return fmt.Errorf("%s: too many files include each other", file)
	}
	return p.parse(file, text, func(included string) error { return p.include(included, depth+1) })
}

// include reads a file, or all files of a directory whose names are those of configurations.
func (p *profile) include(name string, depth int) error {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return p.read(name, depth)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !isIncluded(entry.Name()) || entry.IsDir() {
			continue
		}
		if err := p.read(filepath.Join(name, entry.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

// isIncluded is the rule of MIT's library for the files of a directory.
func isIncluded(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	return strings.HasSuffix(name, ".conf") || strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// parse reads the text of a file.
func (p *profile) parse(file string, text []byte, include func(string) error) error {
	var section string
	var braces []string
	n := 0
	for line := range bytes.Lines(text) {
		n++
		fail := func(what string) error { return fmt.Errorf("%s:%d: %s", file, n, what) }
		s := strings.TrimSpace(string(line))
		directive, argument, _ := strings.Cut(s, " ")
		name, value, hasValue := strings.Cut(s, "=")
		name, value = strings.TrimSuffix(strings.TrimSpace(name), "*"), strings.TrimSpace(value)
		switch {
		case s == "" || s[0] == '#' || s[0] == ';':
		case directive == "include" || directive == "includedir":
			if err := include(strings.TrimSpace(argument)); err != nil {
				return err
			}
		case directive == "module":
		case s[0] == '[':
			end := strings.IndexByte(s, ']')
			if end < 0 || len(braces) > 0 {
				return fail("a section that does not begin or end well")
			}
			section = s[1:end]
		case strings.TrimSuffix(s, "*") == "}":
			if len(braces) == 0 {
				return fail("} without {")
			}
			braces = braces[:len(braces)-1]
		case section == "" || !hasValue || name == "":
			return fail("want [section] or name = value")
		case value == "{":
			if len(braces) > maxIncludes {
				return fail("too many {")
			}
			braces = append(braces, name)
		default:
			path := append(append([]string{section}, braces...), name)
			p.relations = append(p.relations, relation{path, unquote(value)})
		}
	}
	if len(braces) > 0 {
		return fmt.Errorf("%s: { without }", file)
	}
	return nil
}

// unquote returns the value without its quotes.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' {
		return s
	}
	if end := strings.IndexByte(s[1:], '"'); end >= 0 {
		return s[1 : 1+end]
	}
	return s
}

// config returns what the relations say.
func (p *profile) config() (*config, error) {
	c := &config{
		dnsLookupKDC: true, clockSkew: 5 * time.Minute, ticketLifetime: 24 * time.Hour,
		ticketTypes: aesTypes, serviceTypes: aesTypes,
		kdcs: make(map[string][]string), realms: make(map[string]string),
	}
	defaults := make(map[string]string)
	for _, r := range p.relations {
		switch {
		case len(r.path) == 2 && r.path[0] == "libdefaults":
			setOnce(defaults, r.path[1], r.value)
		case len(r.path) == 3 && r.path[0] == "realms" && r.path[2] == "kdc":
			c.kdcs[r.path[1]] = append(c.kdcs[r.path[1]], withPort(r.value))
		case len(r.path) == 2 && r.path[0] == "domain_realm":
			setOnce(c.realms, strings.ToLower(r.path[1]), r.value)
		}
	}
	c.defaultRealm = defaults["default_realm"]
	if text, ok := defaults["dns_lookup_kdc"]; ok {
		c.dnsLookupKDC = isTrue(text)
	}
	for name, d := range map[string]*time.Duration{"clockskew": &c.clockSkew, "ticket_lifetime": &c.ticketLifetime} {
		text, ok := defaults[name]
		if !ok {
			continue
		}
		value, err := parseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%s = %s: %w", name, text, err)
		}
		*d = value
	}
	permitted := parseTypes(defaults["permitted_enctypes"])
	if types := firstOf(parseTypes(defaults["default_tkt_enctypes"]), permitted); types != nil {
		c.ticketTypes = types
	}
	types := firstOf(parseTypes(defaults["default_tgs_enctypes"]), permitted)
	types = slices.DeleteFunc(slices.Clone(types), func(t int32) bool { return !slices.Contains(aesTypes, t) })
	if len(types) > 0 {
		c.serviceTypes = types
	}
	return c, nil
}

func firstOf(lists ...[]int32) []int32 {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

func setOnce(m map[string]string, name, value string) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// isTrue is the rule of MIT's library.
func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "y", "yes", "true", "t", "1", "on":
		return true
	}
	return false
}

// withPort returns the address of a KDC with its port.
func withPort(addr string) string {
	addr = strings.TrimSuffix(addr, "*")
	if strings.HasPrefix(addr, "[") && strings.HasSuffix(addr, "]") || strings.LastIndexByte(addr, ':') < 0 {
		return addr + ":88"
	}
	return addr
}

// parseTypes reads names of encryption types. Those that nothing here knows are left out.
func parseTypes(text string) (types []int32) {
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		switch t := etypeID.EtypeSupported(name); {
		case name == "aes":
			types = append(types, aesTypes...)
		case name == "rc4", slices.Contains(aesTypes, t), t == etypeID.RC4_HMAC:
			if t == 0 {
				t = etypeID.RC4_HMAC
			}
			types = append(types, t)
		}
	}
	return types
}

var errDuration = errors.New("want seconds, as 36000, or hours and minutes, as 10h30m or 10:30")

// parseDuration reads seconds, 10h30m with days too, or hours:minutes:seconds.
func parseDuration(s string) (time.Duration, error) {
	if strings.Contains(s, ":") {
		var d time.Duration
		unit := time.Hour
		for part := range strings.SplitSeq(s, ":") {
			n, err := strconv.ParseUint(part, 10, 16)
			if err != nil || unit < time.Second {
				return 0, errDuration
			}
			d += time.Duration(n) * unit
			unit /= 60
		}
		return d, nil
	}
	s = strings.ReplaceAll(s, " ", "")
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	var days uint64
	if head, rest, ok := strings.Cut(s, "d"); ok {
		var err error
		if days, err = strconv.ParseUint(head, 10, 16); err != nil {
			return 0, errDuration
		}
		s = rest
	}
	d := time.Duration(days) * 24 * time.Hour
	if s == "" {
		return d, nil
	}
	rest, err := time.ParseDuration(s)
	if err != nil || rest < 0 {
		return 0, errDuration
	}
	return d + rest, nil
}

// realmOf returns the realm that [domain_realm] has for a host, "" if none.
func (c *config) realmOf(host string) string {
	host = strings.ToLower(host)
	if realm, ok := c.realms[host]; ok {
		return realm
	}
	for i, r := range host {
		if realm, ok := c.realms[host[i:]]; r == '.' && ok {
			return realm
		}
	}
	return ""
}
