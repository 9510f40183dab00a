package javajson

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// maxDepth is how deep a value may be. Newer versions of Jackson read no more.
const maxDepth = 1000

// Append appends a value as encoding/json would, with the same tags and methods, but with the strings and floating
// point numbers of Java. was is the JSON that the value was read from, or nil: members of its objects that the structs
// do not have are appended after theirs.
func Append(dst []byte, v reflect.Value, was []byte) ([]byte, error) {
	return appendValue(dst, v, was, 0)
}

func appendValue(dst []byte, v reflect.Value, was []byte, depth int) ([]byte, error) {
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	if depth > maxDepth {
		return nil, errors.New("too deep, or a circle")
	}
	if text, done, err := marshaled(dst, v); done {
		return text, err
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("no JSON of %v", f)
		}
		return AppendFloat(dst, v.Float(), v.Type().Bits()), nil
	case reflect.String:
		return appendText(dst, v)
	case reflect.Pointer, reflect.Interface:
		return appendValue(dst, v.Elem(), was, depth+1)
	case reflect.Struct:
		return appendStruct(dst, v, was, depth)
	case reflect.Map:
		return appendMap(dst, v, depth)
	case reflect.Slice, reflect.Array:
		return appendList(dst, v, depth)
	}
	return nil, fmt.Errorf("no JSON of a %v", v.Type())
}

// marshaled appends a value that writes itself. done is false if it does not.
func marshaled(dst []byte, v reflect.Value) (text []byte, done bool, err error) {
	if v.CanAddr() && v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
		v = v.Addr()
	}
	if !v.CanInterface() || v.Kind() == reflect.Interface {
		return nil, false, nil
	}
	isNil := v.Kind() == reflect.Pointer && v.IsNil()
	switch m := v.Interface().(type) {
	case json.Marshaler:
		if isNil {
			return append(dst, "null"...), true, nil
		}
		own, err := m.MarshalJSON()
		if err == nil {
			text, err = appendStyled(dst, own)
		}
		if err != nil {
			err = fmt.Errorf("MarshalJSON of %v: %w", v.Type(), err)
		}
		return text, true, err
	case encoding.TextMarshaler:
		if isNil {
			return append(dst, "null"...), true, nil
		}
		own, err := m.MarshalText()
		if err != nil {
			return nil, true, fmt.Errorf("MarshalText of %v: %w", v.Type(), err)
		}
		return AppendString(dst, string(own)), true, nil
	}
	return nil, false, nil
}

func appendText(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Type() != reflect.TypeFor[json.Number]() {
		return AppendString(dst, v.String()), nil
	}
	text := v.String()
	if text == "" {
		text = "0" // as encoding/json
	}
	if c := text[0]; c != '-' && (c < '0' || c > '9') || !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("the number %q", text)
	}
	return append(dst, text...), nil
}

func appendStruct(dst []byte, v reflect.Value, was []byte, depth int) ([]byte, error) {
	fields := fieldsOf(v.Type())
	old, err := Members(was)
	if err != nil {
		old = nil // it was no object
	}
	dst = append(dst, '{')
	for _, f := range fields {
		value, ok := fieldOf(v, f.index)
		if !ok || f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue
		}
		text, err := appendValue(nil, value, Last(old, f.name), depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if f.quoted && string(text) != "null" {
			text = AppendString(nil, string(text))
		}
		dst = AppendMember(dst, f.name, text)
	}
	for _, m := range Unique(old) {
		if !slices.ContainsFunc(fields, func(f field) bool { return isFold(m.Key, f.name) }) {
			dst = AppendMember(dst, m.Key, m.Value)
		}
	}
	return append(dst, '}'), nil
}

func appendMap(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	values := make(map[string]reflect.Value, v.Len())
	for k, value := range v.Seq2() {
		key, err := keyOf(k)
		if err != nil {
			return nil, err
		}
		values[key] = value
	}
	dst = append(dst, '{')
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, err := appendValue(nil, values[key], nil, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		dst = AppendMember(dst, key, text)
	}
	return append(dst, '}'), nil
}

// keyOf returns the key of a map as text.
func keyOf(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if m, ok := k.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", fmt.Errorf("no JSON of a map with keys of type %v", k.Type())
}

func appendList(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		if IsBytes(v.Type()) {
			return AppendString(dst, base64.StdEncoding.EncodeToString(v.Bytes())), nil
		}
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, v.Index(i), nil, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// IsBytes reports whether the JSON of a slice is a string of base64.
func IsBytes(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Uint8 {
		return false
	}
	element := reflect.PointerTo(t.Elem())
	return !element.Implements(reflect.TypeFor[json.Marshaler]()) &&
		!element.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
