package digest

import (
	"errors"
	"strings"
)

// Faults of what a server or a program gives.
var (
	errNonce      = errors.New("it needs one nonce")
	errAlgorithm  = errors.New("its algorithm is not md5-sess")
	errProtection = errors.New("it wants all that follows signed or encrypted")
	errNotText    = errors.New("it is not valid UTF-8")
	errSize       = errors.New("it is longer than 2,048 bytes")
	errDirective  = errors.New("it is no list of name=value")
	errQuote      = errors.New("a quoted value does not end")
)

// maxToken is the size of the largest token that RFC 2831 allows.
const maxToken = 2048

const space = " \t\r\n"

func isSeparator(r rune) bool { return r == ',' || strings.ContainsRune(space, r) }

// parseDirectives reads a list of name=value, whose values may be quoted. Elements of the list may be empty.
func parseDirectives(s string) (map[string][]string, error) {
	if len(s) > maxToken {
		return nil, errSize
	}
	directives := make(map[string][]string)
	for {
		s = strings.TrimLeftFunc(s, isSeparator)
		if s == "" {
			return directives, nil
		}
		name, rest, ok := strings.Cut(s, "=")
		name = strings.TrimRightFunc(name, isSeparator)
		if !ok || name == "" || strings.ContainsFunc(name, isSeparator) || strings.Contains(name, `"`) {
			return nil, errDirective
		}
		value, rest, err := parseValue(strings.TrimLeft(rest, space))
		if err != nil {
			return nil, err
		}
		name = strings.ToLower(name)
		directives[name] = append(directives[name], value)
		if rest = strings.TrimLeft(rest, space); rest != "" && rest[0] != ',' {
			return nil, errDirective
		}
		s = rest
	}
}

// parseValue reads a value, and returns what follows it.
func parseValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexFunc(s, isSeparator)
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", errQuote
			}
			fallthrough
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", errQuote
}
