package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/discovery/internal/javajson"
	"github.com/gocurator/curator/framework"
)

// InstanceSerializer turns instances into the bytes of their nodes and back. In Java: InstanceSerializer.
type InstanceSerializer[T any] = codec.Codec[ServiceInstance[T]]

// SerializerOption configures the serializer of [NewInstanceSerializer]: that of its own, or that of a
// [ServiceDiscovery].
type SerializerOption interface {
	Option
	applyToSerializer(s *serializerSettings)
}

type serializerSettings struct {
	class    string // of the payload in Java
	hasClass bool
	plain    bool // payloads without their class
	enabled  bool // the member is always there
}

type serializerOption func(*serializerSettings)

func (o serializerOption) apply(s *settings) { s.json = append(slices.Clip(s.json), o) }

func (o serializerOption) applyToSerializer(s *serializerSettings) { o(s) }

// WithPayloadClass sets the name of the Java class of the payloads, such as "com.acme.Meta" or "com.acme.Outer$Inner".
// It is the class that the Java program gives to its JsonInstanceSerializer, or one that extends it.
func WithPayloadClass(name string) SerializerOption {
	return serializerOption(func(s *serializerSettings) { s.class, s.hasClass = name, true })
}

// WithoutPayloadClass writes the payloads without the names of classes, which Java refuses or takes for maps. It is for
// services that no Java program looks for.
func WithoutPayloadClass() SerializerOption {
	return serializerOption(func(s *serializerSettings) { s.plain = true })
}

// WithEnabledMember writes whether an instance is enabled into each node, and not only into those that are disabled.
// Old versions of Curator do not read such a node. In Java: new JsonInstanceSerializer(payloadClass, false).
func WithEnabledMember() SerializerOption {
	return serializerOption(func(s *serializerSettings) { s.enabled = true })
}

// NewInstanceSerializer returns the serializer that Java programs use, byte for byte. Its methods do no I/O. In Java:
// JsonInstanceSerializer.
//
// Java reads a payload as the class that its bytes name, and that depends on T:
//
//	string, bool, int32, float64          String, Boolean, Integer, Double; bare
//	int64, int                            java.lang.Long
//	int8, int16, float32                  java.lang.Byte, Short, Float
//	uint8, uint16, uint32                 java.lang.Short, Integer, Long, which hold all their values
//	uint64, uint                          java.math.BigInteger
//	[]byte                                byte[]
//	other slices, arrays                  java.util.ArrayList
//	maps                                  java.util.LinkedHashMap, the keys sorted
//	structs, types with a MarshalJSON     that of WithPayloadClass, which is required
//	types with a MarshalText              String
//	pointers                              as what they point to; nil is null, as are nil maps and slices
//	struct{}                              none: null; what others have written there stays
//	interfaces such as any                that of the value
//	json.RawMessage                       any: the bytes of the node with the class in them; none is null
//
// [WithPayloadClass] replaces these classes: an int64 as "java.lang.Integer", a string as an enum. Fields have the
// names that their json tags say. A number in a value of type any is a [json.Number]: it is written as it was read.
//
// Decode reads what Java reads, and payloads without their class. It refuses an instance whose payload is not a T. The
// instance remembers the members and the class that T does not have; Encode writes them back, and an instance without
// a change as the bytes that it was read from.
//
// # Security
//
// A Java program creates an object of the class that the bytes name, if it has that class. Whoever may write below the
// base path chooses it: the permission to create there decides. [WithACL] is for the nodes of instances alone; the ACLs
// of the nodes above are those of the client's ACLProvider. This package creates no more than a T.
//
// The error matches [framework.ErrBadArguments] if T has no JSON, or if it needs a class and has none.
func NewInstanceSerializer[T any](opts ...SerializerOption) (InstanceSerializer[T], error) {
	var s serializerSettings
	for _, o := range opts {
		o.applyToSerializer(&s)
	}
	payloads, err := payloadsOf[T](s)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w: %w", framework.ErrBadArguments, err)
	}
	return &jsonSerializer[T]{payloads: payloads, enabled: s.enabled}, nil
}

// jsonSerializer is Java's JsonInstanceSerializer.
type jsonSerializer[T any] struct {
	payloads payloads[T]
	enabled  bool
}

// The members of an instance, in Java's order.
const (
	memberName = iota
	memberID
	memberAddress
	memberPort
	memberSSLPort
	memberPayload
	memberRegistrationTime
	memberServiceType
	memberURISpec
	memberEnabled
	memberCount
)

var memberNames = [memberCount]string{
	"name", "id", "address", "port", "sslPort", "payload", "registrationTimeUTC", "serviceType", "uriSpec", "enabled",
}

// Encode returns the bytes of an instance.
func (s *jsonSerializer[T]) Encode(i ServiceInstance[T]) ([]byte, error) {
	if i.read == nil {
		values, err := s.valuesOf(i, nil)
		if err != nil {
			return nil, err
		}
		text := append(make([]byte, 0, 256), '{') // most instances have less
		for m, value := range values {
			if m != memberEnabled || i.Disabled || s.enabled {
				text = javajson.AppendMember(text, memberNames[m], value)
			}
		}
		return append(text, '}'), nil
	}
	was, members, err := s.parse(i.read)
	if err != nil {
		return nil, err
	}
	payload := javajson.Last(members, memberNames[memberPayload])
	values, err := s.valuesOf(i, payload)
	if err != nil {
		return nil, err
	}
	before, err := s.valuesOf(was, payload)
	if err != nil {
		before = [memberCount][]byte{} // all have changed
	}
	changed := func(m int) bool { return !bytes.Equal(values[m], before[m]) }
	return s.rewrite(i.read, members, values, changed), nil
}

// rewrite returns the bytes that an instance was read from, with the values that have changed.
func (s *jsonSerializer[T]) rewrite(
	read []byte, members []javajson.Member, values [memberCount][]byte, changed func(m int) bool,
) []byte {
	text, same := []byte{'{'}, true
	for _, member := range javajson.Unique(members) {
		if m := slices.Index(memberNames[:], member.Key); m >= 0 && changed(m) {
			member.Value, same = values[m], false
		}
		text = javajson.AppendMember(text, member.Key, member.Value)
	}
	for m, value := range values {
		isMissing := changed(m) || m == memberEnabled && s.enabled
		if isMissing && javajson.Last(members, memberNames[m]) == nil {
			text, same = javajson.AppendMember(text, memberNames[m], value), false
		}
	}
	if same {
		return slices.Clone(read)
	}
	return append(text, '}')
}

// valuesOf returns the values of all members. payload is the one that the instance was read with, if any.
func (s *jsonSerializer[T]) valuesOf(i ServiceInstance[T], payload []byte) (values [memberCount][]byte, err error) {
	fault := func(m int, what any) ([memberCount][]byte, error) {
		return values, fmt.Errorf("discovery: %s of instance %q: %v", memberNames[m], i.ID, what)
	}
	values[memberName] = javajson.AppendString(nil, i.Name)
	values[memberID] = javajson.AppendString(nil, i.ID)
	values[memberAddress] = []byte("null")
	if i.Address != "" {
		values[memberAddress] = javajson.AppendString(nil, i.Address)
	}
	for m, port := range map[int]int{memberPort: i.Port, memberSSLPort: i.SSLPort} {
		if port < math.MinInt32 || port > math.MaxInt32 {
			return fault(m, fmt.Sprintf("%d has more than 32 bits", port))
		}
		values[m] = []byte("null")
		if port != 0 {
			values[m] = strconv.AppendInt(nil, int64(port), 10)
		}
	}
	if values[memberPayload], err = s.payloads.encode(i.Payload, payload); err != nil {
		return values, fmt.Errorf("discovery: payload of instance %q: %w", i.ID, err)
	}
	values[memberRegistrationTime] = strconv.AppendInt(nil, millisOf(i.RegistrationTime), 10)
	if i.Type < 0 || int(i.Type) >= len(serviceTypes) {
		return fault(memberServiceType, i.Type)
	}
	values[memberServiceType] = javajson.AppendString(nil, i.Type.String())
	values[memberURISpec] = i.URISpec.json()
	values[memberEnabled] = strconv.AppendBool(nil, !i.Disabled)
	return values, nil
}

// Decode returns the instance of the bytes of a node.
func (s *jsonSerializer[T]) Decode(data []byte) (ServiceInstance[T], error) {
	i, _, err := s.parse(data)
	if err != nil {
		return ServiceInstance[T]{}, err
	}
	if again, err := s.Encode(i); err != nil || !bytes.Equal(again, data) {
		i.read = slices.Clone(data)
	}
	return i, nil
}

// parse returns an instance, which remembers nothing, and its members.
func (s *jsonSerializer[T]) parse(data []byte) (i ServiceInstance[T], members []javajson.Member, err error) {
	if members, err = javajson.Members(data); err != nil {
		return i, nil, fmt.Errorf("discovery: no instance: %w", err)
	}
	for m, name := range memberNames {
		value := javajson.Last(members, name)
		if value == nil {
			continue
		}
		switch m {
		case memberName:
			i.Name, err = textOf(value)
		case memberID:
			i.ID, err = textOf(value)
		case memberAddress:
			i.Address, err = textOf(value)
		case memberPort:
			i.Port, err = portOf(value)
		case memberSSLPort:
			i.SSLPort, err = portOf(value)
		case memberPayload:
			i.Payload, err = s.payloads.decode(value)
		case memberRegistrationTime:
			var millis int64
			millis, err = integerOf(value)
			i.RegistrationTime = timeOf(millis)
		case memberServiceType:
			i.Type, err = serviceTypeOf(value)
		case memberURISpec:
			i.URISpec, err = uriSpecOf(value)
		case memberEnabled:
			var enabled bool
			enabled, err = flagOf(value)
			i.Disabled = !enabled
		}
		if err != nil {
			return i, nil, fmt.Errorf("discovery: no instance: %s: %w", name, err)
		}
	}
	return i, members, nil
}

// What follows reads values as Jackson does in Java, which takes one kind for another.

var errKind = errors.New("a value of another kind")

// textOf returns a string. A number or a boolean is one, too; null is empty.
func textOf(value []byte) (string, error) {
	switch value[0] {
	case '"':
		return javajson.Text(value)
	case '{', '[':
		return "", errKind
	case 'n':
		return "", nil
	}
	return string(value), nil
}

// trimmed returns the text of a string or a number. Null is empty, as the string "null" is in Java.
func trimmed(value []byte) (string, error) {
	s, err := textOf(value)
	if s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }); s == "null" {
		s = ""
	}
	return s, err
}

// integerOf returns an integer of 64 bits. Empty is 0, and what is behind the point of a number does not count.
func integerOf(value []byte) (int64, error) {
	s, err := trimmed(value)
	if s == "" || err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil || value[0] == '"' {
		return n, err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && (f < math.MinInt64 || f >= math.MaxInt64) {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, err
	}
	return int64(f), nil
}

func portOf(value []byte) (int, error) {
	n, err := integerOf(value)
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, err
	}
	return int(n), nil
}

// serviceTypeOf returns the type with a name or, as in Java, with a number.
func serviceTypeOf(value []byte) (ServiceType, error) {
	if string(value) == "null" {
		return Dynamic, nil
	}
	s, err := textOf(value)
	if err != nil {
		return 0, err
	}
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	i := slices.Index(serviceTypes[:], s)
	if i < 0 && s != "" && (value[0] != '"' || s[0] >= '0' && s[0] <= '9') {
		if n, err := strconv.Atoi(s); err == nil && n < len(serviceTypes) {
			i = n
		}
	}
	if i < 0 {
		return 0, fmt.Errorf("no service type is %q", s)
	}
	return ServiceType(i), nil
}

// flagOf returns a boolean. Null and empty are false, and so is the number 0.
func flagOf(value []byte) (bool, error) {
	s, err := trimmed(value)
	if err != nil {
		return false, err
	}
	switch s {
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE", "":
		return false, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && value[0] != '"' {
		return n != 0, nil
	}
	return false, fmt.Errorf("no boolean is %q", s)
}

// json returns the value of the member.
func (s URISpec) json() []byte {
	if s.IsZero() {
		return []byte("null")
	}
	text := []byte(`{"parts":[`)
	for i, part := range s.parts {
		if i > 0 {
			text = append(text, ',')
		}
		text = javajson.AppendString(append(text, `{"value":`...), part.Value)
		text = strconv.AppendBool(append(text, `,"variable":`...), part.Variable)
		text = append(text, '}')
	}
	return append(text, "]}"...)
}

// uriSpecOf returns a spec with parts or, as in Java, from a string.
func uriSpecOf(value []byte) (spec URISpec, err error) {
	switch value[0] {
	case 'n':
		return spec, nil
	case '"':
		s, err := textOf(value)
		if err != nil {
			return spec, err
		}
		return ParseURISpec(s)
	}
	members, err := javajson.Members(value)
	if err != nil {
		return spec, err
	}
	parts := javajson.Last(members, "parts")
	if parts == nil || parts[0] == 'n' {
		return spec, nil
	}
	elements, err := javajson.Elements(parts)
	if err != nil {
		return spec, err
	}
	for _, element := range elements {
		part, err := uriSpecPartOf(element)
		if err != nil {
			return URISpec{}, err
		}
		spec.parts = append(spec.parts, part)
	}
	return spec, nil
}

func uriSpecPartOf(value []byte) (part URISpecPart, err error) {
	members, err := javajson.Members(value)
	if err != nil {
		return part, err
	}
	if v := javajson.Last(members, "value"); v != nil {
		if part.Value, err = textOf(v); err != nil {
			return part, err
		}
	}
	if v := javajson.Last(members, "variable"); v != nil {
		part.Variable, err = flagOf(v)
	}
	return part, err
}
