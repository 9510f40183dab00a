package sasl

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Login is a section of a JAAS file: a login module and its options. It prints without the values of the options.
type Login struct {
	section string
	module  string
	options func() map[string]string // a function, which no way of printing looks into
}

// FromJAAS reads a section of a JAAS file, by which a Java program of this deployment logs in; "" is "Client", which is
// Java's default. digest.FromLogin and kerberos.FromLogin make a mechanism of it. Java takes the file from the system
// property java.security.auth.login.config, and the section from zookeeper.sasl.clientconfig.
//
// Of several modules in the section the first counts. A backslash in a quoted value means what it does in Java: two
// are one, and one before a quote keeps the quote. System properties in values, as in "${user.home}/zk.keytab", are
// unknown here and an error.
func FromJAAS(file, section string) (Login, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Login{}, fmt.Errorf("sasl: JAAS file: %w", err)
	}
	l, err := parseJAAS(string(text), section)
	if err != nil {
		return Login{}, fmt.Errorf("sasl: JAAS file %s: %w", file, err)
	}
	return l, nil
}

// Module returns the Java class of the login module.
func (l Login) Module() string { return l.module }

// Option returns the value of an option of the module, and false if it has none.
func (l Login) Option(name string) (value string, ok bool) {
	if l.options != nil {
		value, ok = l.options()[name]
	}
	return value, ok
}

// IsOn reports whether an option is "true".
func (l Login) IsOn(name string) bool {
	value, _ := l.Option(name)
	return strings.EqualFold(value, "true")
}

// Password returns the user name and the password of a DigestLoginModule, and false if that is not the module.
func (l Login) Password() (user, password string, ok bool) {
	user, hasUser := l.Option("username")
	password, hasPassword := l.Option("password")
	return user, password, l.module == "org.apache.zookeeper.server.auth.DigestLoginModule" && hasUser && hasPassword
}

// Format prints the section and the module alone, whatever the verb is.
func (l Login) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "section %q (%s)", l.section, l.module)
}

// Faults of a JAAS file. They do not quote it, because it has secrets.
var (
	errEnd      = errors.New("it ends too early")
	errQuote    = errors.New("a quote does not end in its line")
	errComment  = errors.New("a comment does not end")
	errProperty = errors.New("a value with a system property of Java: put its value there")
	errTwice    = errors.New("the section is there twice")
)

func parseJAAS(text, section string) (Login, error) {
	if section == "" {
		section = "Client"
	}
	p := &jaasParser{rest: text, line: 1}
	var found []Login
	for p.next(); p.err == nil && p.token != ""; p.next() {
		l := p.section()
		if l.section == section {
			found = append(found, l)
		}
	}
	switch {
	case p.err != nil:
		return Login{}, fmt.Errorf("line %d: %w", p.line, p.err)
	case len(found) == 0:
		return Login{}, fmt.Errorf("no section %q", section)
	case len(found) > 1:
		return Login{}, fmt.Errorf("%q: %w", section, errTwice)
	}
	for _, value := range found[0].options() {
		if strings.Contains(value, "${") {
			return Login{}, fmt.Errorf("%q: %w", section, errProperty)
		}
	}
	return found[0], nil
}

// jaasParser reads tokens: words, quoted strings, and the characters {, }, ; and =.
type jaasParser struct {
	rest   string
	line   int
	token  string // "" at the end
	quoted bool
	err    error
}

// section reads: name { modules };
func (p *jaasParser) section() Login {
	l := Login{section: p.word("the name of a section")}
	p.expect("{")
	for first := true; p.err == nil && !p.is("}"); first = false {
		module, options := p.module()
		if first {
			l.module, l.options = module, func() map[string]string { return options }
		}
	}
	if l.module == "" && p.err == nil {
		p.err = errors.New("a section without a module")
	}
	p.next()
	if !p.is(";") {
		p.fail(";")
	}
	return l
}

// module reads: class flag name=value ... ;
func (p *jaasParser) module() (class string, options map[string]string) {
	class = p.word("the class of a module")
	switch flag := p.word("a flag of a module"); {
	case p.err != nil:
	case !strings.EqualFold(flag, "required") && !strings.EqualFold(flag, "requisite") &&
		!strings.EqualFold(flag, "sufficient") && !strings.EqualFold(flag, "optional"):
		p.err = errors.New("the flag of a module is required, requisite, sufficient or optional")
	}
	options = make(map[string]string)
	for p.err == nil && !p.is(";") {
		name := p.word("the name of an option")
		p.expect("=")
		options[name] = p.word("the value of an option")
	}
	p.next()
	return class, options
}

// is reports whether the token is this character.
func (p *jaasParser) is(sign string) bool { return p.token == sign && !p.quoted }

// word returns the token, and goes on to the next one.
func (p *jaasParser) word(what string) string {
	if !p.quoted && (p.token == "" || strings.Contains("{};=", p.token)) {
		p.fail(what)
	}
	word := p.token
	p.next()
	return word
}

// expect goes on behind a sign.
func (p *jaasParser) expect(sign string) {
	if !p.is(sign) {
		p.fail(sign)
	}
	p.next()
}

func (p *jaasParser) fail(want string) {
	switch {
	case p.err != nil:
	case p.token == "" && !p.quoted:
		p.err = errEnd
	default:
		p.err = fmt.Errorf("%s is missing", want)
	}
}

// next reads a token.
func (p *jaasParser) next() {
	p.token, p.quoted = "", false
	if p.err != nil || !p.skip() {
		return
	}
	switch c := p.rest[0]; {
	case c == '"':
		if p.token, p.rest, p.quoted = cutQuoted(p.rest[1:]); !p.quoted {
			p.err = errQuote
		}
	case strings.IndexByte("{};=", c) >= 0:
		p.token, p.rest = p.rest[:1], p.rest[1:]
	default:
		end := strings.IndexAny(p.rest, "{};=\" \t\r\n")
		if end < 0 {
			end = len(p.rest)
		}
		p.token, p.rest = p.rest[:end], p.rest[end:]
	}
}

// escapes are the letters that stand for another character behind a backslash. Other characters stand for themselves.
var escapes = map[byte]byte{'a': 7, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// cutQuoted returns a value, whose quote has begun, as Java's StreamTokenizer reads it, and the text behind it. It
// returns false if the quote does not end in its line.
func cutQuoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] != '\\':
			b.WriteByte(s[i])
			continue
		}
		i++
		octal := octalDigits(s[i:])
		switch {
		case i == len(s) || s[i] == '\n':
			return "", "", false
		case octal > 0:
			n, _ := strconv.ParseUint(s[i:i+octal], 8, 8)
			b.WriteRune(rune(n))
			i += octal - 1
		case escapes[s[i]] != 0:
			b.WriteByte(escapes[s[i]])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// octalDigits returns how many characters of s are the number of a character: at most three, and no more than \377.
func octalDigits(s string) int {
	n := 0
	for n < len(s) && n < 3 && '0' <= s[n] && s[n] <= '7' {
		n++
	}
	if n == 3 && s[0] > '3' {
		n = 2
	}
	return n
}

// skip skips space and comments, and reports whether anything follows.
func (p *jaasParser) skip() bool {
	for p.rest != "" {
		switch {
		case p.rest[0] == '\n':
			p.line++
			p.rest = p.rest[1:]
		case strings.IndexByte(" \t\r", p.rest[0]) >= 0:
			p.rest = p.rest[1:]
		case strings.HasPrefix(p.rest, "//"):
			if end := strings.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
			} else {
				p.rest = ""
			}
		case strings.HasPrefix(p.rest, "/*"):
			end := strings.Index(p.rest, "*/")
			if end < 0 {
				p.err = errComment
				return false
			}
			p.line += strings.Count(p.rest[:end], "\n")
			p.rest = p.rest[end+2:]
		default:
			return true
		}
	}
	return false
}
