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
// Files that Java reads have the same meaning here. Of several modules in the section the first counts. A backslash in
// a quoted value means what it does in Java: two are one, and one before a quote keeps the quote. A slash outside of
// quotes begins a comment. A quote ends with its line at the latest. System properties in values, as in
// "${user.home}/zk.keytab", are unknown here and an error.
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
	errSingle   = errors.New("single quotes, which Java allows around the name of a section alone")
	errComment  = errors.New("a comment does not end")
	errModule   = errors.New("a section without a module")
	errProperty = errors.New("a value with a system property of Java: put its value there")
	errTwice    = errors.New("the section is there twice")
)

func parseJAAS(text, section string) (Login, error) {
	if section == "" {
		section = "Client"
	}
	p := &jaasParser{rest: text, line: 1}
	var found []Login
	for p.next(); p.err == nil && !p.atEnd(); p.next() {
		l := p.section()
		if l.section != section {
			continue
		}
		if l.module == "" && p.err == nil {
			p.err = errModule
		}
		found = append(found, l)
	}
	switch {
	case p.err != nil && p.open != nil: // Java goes on behind it, and so does the parser: it explains the error
		return Login{}, p.open
	case p.err != nil:
		return Login{}, fmt.Errorf("line %d: %w", p.line, p.err)
	case len(found) == 0:
		return Login{}, fmt.Errorf("no section %q", section)
	case len(found) > 1:
		return Login{}, fmt.Errorf("%q: %w", section, errTwice)
	}
	options := found[0].options()
	for name, value := range options {
		expanded, ok := expand(value)
		if !ok {
			return Login{}, fmt.Errorf("%q: %w", section, errProperty)
		}
		options[name] = expanded
	}
	return found[0], nil
}

// expand replaces "${/}" by a slash, as Java does on systems where files have it. Java keeps the text between "${{" and
// "}}", and a "${" that does not end. expand returns false for other properties.
func expand(value string) (expanded string, ok bool) {
	var b strings.Builder
	for {
		before, name, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		closing := "}"
		if strings.HasPrefix(name, "{") {
			closing = "}}"
		}
		name, rest, found := strings.Cut(name, closing)
		switch {
		case !found, closing == "}}":
			b.WriteString(value[len(before) : len(value)-len(rest)])
		case name == "/":
			b.WriteByte('/')
		default:
			return "", false
		}
		value = rest
	}
}

// jaasParser reads tokens as Java's StreamTokenizer does: words, quoted strings, and the characters {, }, ; and =. In
// unquoted words it accepts characters that are an error in Java, such as @.
type jaasParser struct {
	rest  string
	line  int
	token string // "" at the end
	quote byte   // of the token; 0 without one
	err   error
	open  error // the first quote or comment that does not end
}

func (p *jaasParser) atEnd() bool { return p.token == "" && p.quote == 0 }

// section reads: name { modules };
func (p *jaasParser) section() Login {
	if p.quote == '\'' { // as Java
		p.quote = '"'
	}
	l := Login{section: p.word("the name of a section")}
	p.expect("{")
	for first := true; p.err == nil && !p.is("}"); first = false {
		module, options := p.module()
		if first {
			l.module, l.options = module, func() map[string]string { return options }
		}
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
func (p *jaasParser) is(sign string) bool { return p.token == sign && p.quote == 0 }

// word returns the token, and goes on to the next one.
func (p *jaasParser) word(what string) string {
	switch {
	case p.quote == 0 && (p.token == "" || strings.Contains("{};=", p.token)):
		p.fail(what)
	case p.quote == '\'' && p.err == nil:
		p.err = errSingle
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
	case p.atEnd():
		p.err = errEnd
	default:
		p.err = fmt.Errorf("%s is missing", want)
	}
}

// next reads a token.
func (p *jaasParser) next() {
	p.token, p.quote = "", 0
	if p.err != nil || !p.skip() {
		return
	}
	switch c := p.rest[0]; {
	case c == '"', c == '\'':
		p.quoted(c)
	case strings.IndexByte("{};=", c) >= 0:
		p.token, p.rest = p.rest[:1], p.rest[1:]
	default:
		end := strings.IndexFunc(p.rest, func(r rune) bool { return r <= ' ' || strings.ContainsRune("{};=\"/", r) })
		if end < 0 {
			end = len(p.rest)
		}
		p.token, p.rest = p.rest[:end], p.rest[end:]
	}
}

// escapes are the letters that stand for another character behind a backslash. Other characters stand for themselves.
var escapes = map[byte]byte{'a': 7, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// quoted reads a quoted string. It ends before the end of its line, unless a backslash is there.
func (p *jaasParser) quoted(quote byte) {
	s := p.rest
	var b strings.Builder
	i := 1
	for ; i < len(s) && s[i] != quote && s[i] != '\n' && s[i] != '\r'; i++ {
		if s[i] != '\\' || i == len(s)-1 {
			b.WriteByte(s[i])
			continue
		}
		i++
		octal := octalDigits(s[i:])
		switch {
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
	if i < len(s) && s[i] == quote {
		i++
	} else {
		p.unclosed(errQuote)
	}
	p.token, p.quote = b.String(), quote
	p.advance(i)
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
		case p.rest[0] <= ' ':
			p.advance(1)
		case strings.HasPrefix(p.rest, "/*"):
			if end := strings.Index(p.rest[2:], "*/"); end >= 0 {
				p.advance(2 + end + 2)
			} else {
				p.unclosed(errComment)
				p.rest = ""
			}
		case p.rest[0] == '/':
			// A slash begins a comment to the end of the line. Java does not look at the character behind it, so that a
			// slash at the end of a line hides the next line.
			from := min(2, len(p.rest))
			if end := strings.IndexAny(p.rest[from:], "\r\n"); end >= 0 {
				p.advance(from + end)
			} else {
				p.rest = ""
			}
		default:
			return true
		}
	}
	return false
}

// advance goes on behind n bytes. Lines end as in Java: by a line feed, a carriage return, or both.
func (p *jaasParser) advance(n int) {
	passed := p.rest[:n]
	p.line += strings.Count(passed, "\n") + strings.Count(passed, "\r") - strings.Count(passed, "\r\n")
	p.rest = p.rest[n:]
	if strings.HasSuffix(passed, "\r") && strings.HasPrefix(p.rest, "\n") {
		p.line-- // the line feed counts
	}
}

// unclosed notes a quote or a comment without an end. Java accepts it if the rest of the file is in order.
func (p *jaasParser) unclosed(fault error) {
	if p.open == nil {
		p.open = fmt.Errorf("line %d: %w", p.line, fault)
	}
}
