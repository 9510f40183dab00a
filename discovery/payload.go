package discovery

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gocurator/curator/discovery/internal/javajson"
)

// classMember names the class of an object.
const classMember = "@class"

// payloads reads and writes payloads. Jackson writes an object with its class as a member, other values as an array of
// the class and the value, and what JSON has a type for bare.
type payloads[T any] struct {
	class    string // of WithPayloadClass
	typ      reflect.Type
	none     bool // T is struct{}
	raw      bool // T is json.RawMessage
	plain    bool
	isList   bool // T is a slice or an array
	hasOwn   bool // T reads itself
	isDouble bool // T is a floating point number
}

func payloadsOf[T any](s serializerSettings) (p payloads[T], err error) {
	t := reflect.TypeFor[T]()
	p = payloads[T]{class: s.class, plain: s.plain, raw: t == reflect.TypeFor[json.RawMessage]()}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p.typ = t
	p.hasOwn = implements[json.Unmarshaler](t)
	p.none = t.Kind() == reflect.Struct && t.NumField() == 0 && !implements[json.Marshaler](t) && !isText(t)
	p.isList = (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !implements[json.Marshaler](t) && !isText(t)
	p.isDouble = t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32
	class := classOf(t, nil)
	switch {
	case s.hasClass && s.plain:
		err = errors.New("payloads with a class and without one")
	case s.hasClass && s.class == "":
		err = errors.New("the class of the payloads has no name")
	case s.hasClass && (p.none || p.raw):
		err = fmt.Errorf("payloads of type %v have no class", t)
	case p.none || p.raw || s.plain || s.hasClass || t.Kind() == reflect.Interface:
	case class == "" && slices.Contains([]reflect.Kind{
		reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer,
	}, t.Kind()):
		err = fmt.Errorf("payloads of type %v have no JSON", t)
	case class == "":
		err = fmt.Errorf("payloads of type %v need their class in Java: WithPayloadClass or WithoutPayloadClass", t)
	}
	return p, err
}

// implements reports whether t or a pointer to it has the methods of I.
func implements[I any](t reflect.Type) bool {
	return t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

func isText(t reflect.Type) bool {
	return implements[encoding.TextMarshaler](t) && !implements[json.Marshaler](t)
}

// Classes that Jackson writes bare.
const (
	javaString  = "java.lang.String"
	javaBoolean = "java.lang.Boolean"
	javaInteger = "java.lang.Integer"
	javaDouble  = "java.lang.Double"
)

// classOf returns the class of the values of a type, empty if there is none. body is the JSON of a value.
func classOf(t reflect.Type, body []byte) string {
	switch {
	case t == reflect.TypeFor[json.Number]():
		return classOfNumber(body)
	case implements[json.Marshaler](t):
		return ""
	case isText(t):
		return javaString
	case javajson.IsBytes(t):
		return "[B"
	}
	switch t.Kind() {
	case reflect.String:
		return javaString
	case reflect.Bool:
		return javaBoolean
	case reflect.Int8:
		return "java.lang.Byte"
	case reflect.Int16, reflect.Uint8:
		return "java.lang.Short"
	case reflect.Int32, reflect.Uint16:
		return javaInteger
	case reflect.Int, reflect.Int64, reflect.Uint32:
		return "java.lang.Long"
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return "java.math.BigInteger"
	case reflect.Float32:
		return "java.lang.Float"
	case reflect.Float64:
		return javaDouble
	case reflect.Slice, reflect.Array:
		return "java.util.ArrayList"
	case reflect.Map:
		return "java.util.LinkedHashMap"
	}
	return ""
}

// classOfNumber returns the class that Jackson takes a bare number for.
func classOfNumber(body []byte) string {
	if isDecimal(body) {
		return javaDouble
	}
	n, err := strconv.ParseInt(string(body), 10, 64)
	switch {
	case err != nil:
		return "java.math.BigInteger"
	case n < math.MinInt32 || n > math.MaxInt32:
		return "java.lang.Long"
	}
	return javaInteger
}

func isDecimal(number []byte) bool { return bytes.ContainsAny(number, ".eE") }

// isBare reports whether Jackson reads the bare JSON of a value as a class.
func isBare(class string, body []byte) bool {
	switch class {
	case javaString:
		return kindOf(body) == '"'
	case javaBoolean:
		return kindOf(body) == 't'
	case javaInteger, javaDouble:
		return kindOf(body) == '0' && classOfNumber(body) == class
	}
	return false
}

// kindOf returns a byte for each kind of JSON, of which there is at least one byte.
func kindOf(body []byte) byte {
	switch c := body[0]; c {
	case '{', '[', '"', 'n':
		return c
	case 't', 'f':
		return 't'
	}
	return '0'
}

// form is a payload as it was read.
type form struct {
	class string // empty if it had none
	body  []byte // the JSON without an array around it
}

// formOf takes a payload apart.
func (p payloads[T]) formOf(payload []byte) form {
	f := form{body: payload}
	if payload[0] == '[' && !(p.plain && p.typ.Kind() == reflect.Interface) {
		elements, err := javajson.Elements(payload)
		if err == nil && len(elements) == 2 && elements[0][0] == '"' && p.isWrapped(elements[1]) {
			f.class, err = textOf(elements[0])
			f.body = elements[1]
		}
		if err != nil {
			return form{body: payload}
		}
	}
	if f.body[0] == '{' && f.class == "" {
		members, err := javajson.Members(f.body)
		class := javajson.Last(members, classMember)
		if err == nil && class != nil && class[0] == '"' {
			f.class, _ = textOf(class) // a string
		}
	}
	return f
}

// isWrapped reports whether the second element of an array of two, behind a string, is the payload.
func (p payloads[T]) isWrapped(element []byte) bool {
	switch {
	case !p.isList:
		return true
	case javajson.IsBytes(p.typ):
		return element[0] == '"'
	}
	return element[0] == '[' || element[0] == 'n'
}

// encode returns the JSON of a payload. was is the one that it was read as, or nil.
func (p payloads[T]) encode(payload T, was []byte) ([]byte, error) {
	v := reflect.ValueOf(&payload).Elem()
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return []byte("null"), nil
		}
		v = v.Elem()
	}
	switch {
	case p.none, (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.IsNil(), p.raw && v.Len() == 0:
		return []byte("null"), nil
	case p.raw && (!json.Valid(v.Bytes()) || !utf8.Valid(v.Bytes())):
		return nil, errors.New("no JSON")
	case p.raw:
		return slices.Clone(v.Bytes()), nil
	}
	var f form
	if was != nil && was[0] != 'n' {
		f = p.formOf(was)
	}
	body, isNumber, err := bodyOf(v, f.body)
	if err != nil {
		return nil, err
	}
	if isNumber && p.plain {
		return nil, fmt.Errorf("no JSON of %s", body)
	}
	if p.plain || body[0] == 'n' {
		return body, nil
	}
	class := p.class
	if v.Type() != p.typ && kindOf(body) != '{' || class == "" { // the class of an interface is that of its objects
		class = classOf(v.Type(), body)
	}
	if f.body != nil && p.isAlike(f.body, body) {
		switch isScalar := kindOf(body) != '{' && kindOf(body) != '['; {
		case f.class != "":
			class = f.class
		case isScalar && !isNumber:
			return body, nil // it was bare
		}
	}
	return withClass(class, body, v.Type())
}

// isAlike reports whether two payloads have the same kind of JSON, so that the class of one fits the other.
func (p payloads[T]) isAlike(a, b []byte) bool {
	isNumber := func(body []byte) bool { return kindOf(body) == '0' || kindOf(body) == '"' } // perhaps "NaN"
	return kindOf(a) == kindOf(b) || p.isDouble && isNumber(a) && isNumber(b)
}

// bodyOf returns the JSON of a value without its class. isNumber is true for the string that stands for a floating
// point number that is not finite. was is the JSON that the value was read from.
func bodyOf(v reflect.Value, was []byte) (body []byte, isNumber bool, err error) {
	if v.CanFloat() && !implements[json.Marshaler](v.Type()) && !isText(v.Type()) {
		f := v.Float()
		for text, is := range map[string]bool{
			"NaN": math.IsNaN(f), "Infinity": math.IsInf(f, 1), "-Infinity": math.IsInf(f, -1),
		} {
			if is {
				return javajson.AppendString(nil, text), true, nil
			}
		}
	}
	if was != nil && was[0] == '{' {
		was = withoutClass(was)
	}
	body, err = javajson.Append(nil, v, was)
	return body, false, err
}

// withClass returns the JSON of a value with its class.
func withClass(class string, body []byte, t reflect.Type) ([]byte, error) {
	if class == "" {
		return nil, fmt.Errorf("a payload of type %v needs its class in Java: WithPayloadClass", t)
	}
	name := javajson.AppendString(nil, class)
	if body[0] != '{' {
		if isBare(class, body) {
			return body, nil
		}
		return slices.Concat([]byte{'['}, name, []byte{','}, body, []byte{']'}), nil
	}
	members, err := javajson.Members(body)
	if err != nil {
		return nil, err
	}
	if javajson.Last(members, classMember) != nil { // the program's own
		return body, nil
	}
	text := javajson.AppendMember([]byte{'{'}, classMember, name)
	for _, m := range members {
		text = javajson.AppendMember(text, m.Key, m.Value)
	}
	return append(text, '}'), nil
}

// withoutClass returns an object without its class.
func withoutClass(body []byte) []byte {
	members, err := javajson.Members(body)
	if err != nil || javajson.Last(members, classMember) == nil {
		return body
	}
	text := []byte{'{'}
	for _, m := range members {
		if m.Key != classMember {
			text = javajson.AppendMember(text, m.Key, m.Value)
		}
	}
	return append(text, '}')
}

// decode returns the payload of a member.
func (p payloads[T]) decode(payload []byte) (v T, err error) {
	switch {
	case payload[0] == 'n' || p.none:
		return v, nil
	case p.raw:
		reflect.ValueOf(&v).Elem().SetBytes(slices.Clone(payload))
		return v, nil
	}
	body := p.formOf(payload).body
	if body[0] == '{' && (p.typ.Kind() != reflect.Struct || p.hasOwn) {
		body = withoutClass(body)
	}
	if p.isDouble && !p.hasOwn && body[0] == '"' {
		err = p.decodeDouble(&v, body)
		return v, err
	}
	if s, ok := any(&v).(*string); ok && body[0] == '"' { // the usual payload, without a decoder
		*s, err = textOf(body)
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		var zero T
		return zero, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return v, nil
}

// decodeDouble sets v, a floating point number or a pointer to one, to a number that is a string.
func (p payloads[T]) decodeDouble(v *T, body []byte) error {
	s, err := trimmed(body)
	if err != nil {
		return err
	}
	number, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return err
	}
	f := reflect.ValueOf(v).Elem()
	for f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	f.SetFloat(number)
	return nil
}
