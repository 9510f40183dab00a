package curatortest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

func (u saslUsers) apply(s *RealServer) {
	s.users = u
	s.config["authProvider.sasl"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	s.props["java.security.auth.login.config"] = s.jaasFile()
}

func (s *RealServer) jaasFile() string { return filepath.Join(s.dir, "jaas.conf") }

// SetSASLUsers replaces the users of [WithSASLUsers]. The server reads them when it starts: call Restart. The error is
// about a name that a JAAS file cannot have, or about the file.
func (s *RealServer) SetSASLUsers(users map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		return errors.New("curatortest: the server was started without SASL")
	}
	s.users = copyUsers(users)
	return s.writeJAAS()
}

// writeJAAS writes the file with the users, if the server has some.
func (s *RealServer) writeJAAS() error {
	if s.users == nil {
		return nil
	}
	text, err := jaas(s.users)
	if err != nil {
		return err
	}
	return os.WriteFile(s.jaasFile(), []byte(text), 0o600)
}

// jaas returns the section of a server.
func jaas(users map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`)
	for _, user := range slices.Sorted(maps.Keys(users)) {
		if strings.ContainsFunc(user, unnameable) {
			return "", fmt.Errorf("curatortest: a JAAS file cannot have the user %q", user)
		}
		fmt.Fprintf(&b, "\n  user_%s=\"%s\"", user, quote.Replace(users[user]))
	}
	b.WriteString(";\n};\n")
	return b.String(), nil
}

// unnameable reports whether the name of an option of a JAAS file cannot have a character.
func unnameable(r rune) bool {
	const others, firstOther = "_-.$*", 0xa0
	return r < firstOther && !strings.ContainsRune(others, r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}
