package javajson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Member is a member of an object.
type Member struct {
	Key   string
	Value []byte // as it is in the text, without spaces around it
}

// Members returns the members of the object that data begins with, in their order. As in Java, a byte order mark may
// stand before the object and anything behind it. A key may be there several times: the last one counts.
func Members(data []byte) (members []Member, err error) {
	err = split(data, '{', func(d *json.Decoder) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		value := json.RawMessage{}
		if err := d.Decode(&value); err != nil {
			return err
		}
		members = append(members, Member{key.(string), value}) // a decoder gives no other token here
		return nil
	})
	return members, err
}

// Elements returns the elements of the array that data begins with, as [Members] does.
func Elements(data []byte) (elements [][]byte, err error) {
	err = split(data, '[', func(d *json.Decoder) error {
		value := json.RawMessage{}
		err := d.Decode(&value)
		elements = append(elements, value)
		return err
	})
	return elements, err
}

// split calls each at every member or element of the object or array that data begins with.
func split(data []byte, opening json.Delim, each func(*json.Decoder) error) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(data))
	token, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("no JSON")
	case err != nil:
		return err
	case token != opening:
		return fmt.Errorf("no %q at the beginning", opening.String())
	}
	for d.More() {
		if err := each(d); err != nil {
			return unexpected(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return unexpected(err)
	}
	if !utf8.Valid(data[:d.InputOffset()]) { // encoding/json would replace it
		return errors.New("not UTF-8")
	}
	return nil
}

// unexpected returns the error of a text that ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
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
