package javajson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Member is a member of an object.
type Member struct {
	Key   string
	Value []byte // as it is in the text, without spaces around it
}

// Members returns the members of the object that data begins with, in their order. As in Java, a byte order mark may
// stand before the object and anything behind it. A key may be there several times: the last one counts. The values are
// part of data.
func Members(data []byte) (members []Member, err error) {
	members = make([]Member, 0, 10) // an instance has nine or ten
	err = split(data, '{', '}', func(s *scanner) error {
		quoted, err := s.key()
		if err != nil {
			return err
		}
		m := Member{}
		if m.Key, err = Text(quoted); err != nil {
			return err
		}
		m.Value, err = s.value(0)
		members = append(members, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return members, nil
}

// Elements returns the elements of the array that data begins with, as [Members] does.
func Elements(data []byte) (elements [][]byte, err error) {
	err = split(data, '[', ']', func(s *scanner) error {
		value, err := s.value(0)
		elements = append(elements, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return elements, nil
}

// split calls each at every member or element of the object or array that data begins with.
func split(data []byte, opening, closing byte, each func(*scanner) error) error {
	s := scanner{data: bytes.TrimPrefix(data, []byte("\ufeff"))}
	switch c := s.peek(); {
	case s.at == len(s.data):
		return errors.New("no JSON")
	case c != opening:
		return fmt.Errorf("no %q at the beginning", string(opening))
	}
	if err := s.list(opening, closing, func() error { return each(&s) }); err != nil {
		return err
	}
	if !utf8.Valid(s.data[:s.at]) { // encoding/json would replace it
		return errors.New("not UTF-8")
	}
	return nil
}

// Last returns the value of a key, nil if there is none.
func Last(members []Member, key string) []byte {
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].Key == key {
			return members[i].Value
		}
	}
	return nil
}

// Unique returns the members that count, in their order: the last one of each key.
func Unique(members []Member) []Member {
	last := make(map[string]int, len(members))
	for i, m := range members {
		last[m.Key] = i
	}
	unique := make([]Member, 0, len(last))
	for i, m := range members {
		if last[m.Key] == i {
			unique = append(unique, m)
		}
	}
	return unique
}

// AppendMember appends a member to an object that has no closing brace yet.
func AppendMember(dst []byte, key string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(AppendString(dst, key), ':'), value...)
}

// appendStyled appends what some other writer of JSON wrote, without spaces and with Java's strings.
func appendStyled(dst, text []byte) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	for rest := compact.Bytes(); len(rest) > 0; {
		if rest[0] != '"' {
			dst, rest = append(dst, rest[0]), rest[1:]
			continue
		}
		end := 1
		for rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		var s string
		if err := json.Unmarshal(rest[:end+1], &s); err != nil {
			return nil, err
		}
		dst, rest = AppendString(dst, s), rest[end+1:]
	}
	return dst, nil
}

// isFold reports whether encoding/json takes a key for the name of a field.
func isFold(key, name string) bool { return strings.EqualFold(key, name) }
