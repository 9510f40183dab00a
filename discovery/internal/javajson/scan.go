package javajson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxNesting is how deep the values of a text may be, as in encoding/json: a text of brackets cannot exhaust the stack.
const maxNesting = 10000

// scanner accepts the JSON that encoding/json accepts, and allocates nothing.
type scanner struct {
	data []byte
	at   int
}

// peek returns the next byte behind spaces, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// fault returns the error of a text that cannot go on as it does.
func (s *scanner) fault() error {
	if s.at >= len(s.data) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("unexpected %q at byte %d", s.data[s.at], s.at)
}

// take passes the next byte behind spaces, which has to be c.
func (s *scanner) take(c byte) error {
	if s.peek() != c || s.at >= len(s.data) {
		return s.fault()
	}
	s.at++
	return nil
}

// list passes an object or an array, and calls each at every member or element.
func (s *scanner) list(opening, closing byte, each func() error) error {
	if err := s.take(opening); err != nil {
		return err
	}
	if s.peek() == closing {
		s.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if s.peek() == closing {
			s.at++
			return nil
		}
		if err := s.take(','); err != nil {
			return err
		}
	}
}

// key passes the key of a member and its colon.
func (s *scanner) key() (quoted []byte, err error) {
	if s.peek() != '"' {
		return nil, s.fault()
	}
	start := s.at
	if err := s.text(); err != nil {
		return nil, err
	}
	quoted = s.data[start:s.at]
	return quoted, s.take(':')
}

// value passes a value, which is within depth others.
func (s *scanner) value(depth int) (value []byte, err error) {
	c, start := s.peek(), s.at
	switch c {
	case '{', '[':
		err = s.nested(c, depth+1)
	case '"':
		err = s.text()
	case 't':
		err = s.word("true")
	case 'f':
		err = s.word("false")
	case 'n':
		err = s.word("null")
	default:
		err = s.number()
	}
	return s.data[start:s.at:s.at], err
}

// nested passes an object or an array.
func (s *scanner) nested(opening byte, depth int) error {
	if depth > maxNesting {
		return errors.New("nested too deep")
	}
	element := func() error {
		_, err := s.value(depth)
		return err
	}
	if opening == '[' {
		return s.list('[', ']', element)
	}
	return s.list('{', '}', func() error {
		if _, err := s.key(); err != nil {
			return err
		}
		return element()
	})
}

// text passes a string.
func (s *scanner) text() error {
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c < ' ':
			return s.fault()
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.fault()
}

// escape passes an escape but for its last byte.
func (s *scanner) escape() error {
	s.at++
	if s.at >= len(s.data) {
		return s.fault()
	}
	switch s.data[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			s.at++
			if s.at >= len(s.data) || !isHex(s.data[s.at]) {
				return s.fault()
			}
		}
		return nil
	}
	return s.fault()
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// word passes a word.
func (s *scanner) word(word string) error {
	for _, c := range []byte(word) {
		if s.at >= len(s.data) || s.data[s.at] != c {
			return s.fault()
		}
		s.at++
	}
	return nil
}

// number passes a number.
func (s *scanner) number() error {
	s.skip('-')
	if !s.skip('0') {
		if err := s.digits(); err != nil {
			return err
		}
	}
	if s.skip('.') {
		if err := s.digits(); err != nil {
			return err
		}
	}
	if !s.skip('e') && !s.skip('E') {
		return nil
	}
	if !s.skip('-') {
		s.skip('+')
	}
	return s.digits()
}

// skip passes the next byte if it is c.
func (s *scanner) skip(c byte) bool {
	if s.at >= len(s.data) || s.data[s.at] != c {
		return false
	}
	s.at++
	return true
}

// digits passes one digit and those behind it.
func (s *scanner) digits() error {
	if s.at >= len(s.data) || !isDigit(s.data[s.at]) {
		return s.fault()
	}
	for s.at < len(s.data) && isDigit(s.data[s.at]) {
		s.at++
	}
	return nil
}

// Text returns the string that a JSON string stands for. What is not UTF-8 becomes U+FFFD.
func Text(quoted []byte) (string, error) {
	if isPlain(quoted) {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}

// isPlain reports whether a JSON string says what it stands for.
func isPlain(quoted []byte) bool {
	last := len(quoted) - 1
	if last < 1 || quoted[0] != '"' || quoted[last] != '"' {
		return false
	}
	for _, c := range quoted[1:last] {
		if c < ' ' || c == '\\' || c == '"' {
			return false
		}
	}
	return utf8.Valid(quoted)
}
