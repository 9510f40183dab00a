package discovery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
)

// table returns the rows of a file with tabs between the columns. A # begins a comment.
func table(tb testing.TB, name string) (rows [][]string) {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return rows
}

func serializer[T any](tb testing.TB, opts ...discovery.SerializerOption) discovery.InstanceSerializer[T] {
	tb.Helper()
	s, err := discovery.NewInstanceSerializer[T](opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func decode[T any](tb testing.TB, s discovery.InstanceSerializer[T], data string) discovery.ServiceInstance[T] {
	tb.Helper()
	i, err := s.Decode([]byte(data))
	if err != nil {
		tb.Fatalf("%s: %v", data, err)
	}
	return i
}

func encode[T any](tb testing.TB, s discovery.InstanceSerializer[T], i discovery.ServiceInstance[T]) string {
	tb.Helper()
	data, err := s.Encode(i)
	if err != nil {
		tb.Fatalf("%+v: %v", i, err)
	}
	return string(data)
}

// written checks a row of java-writes.txt.
type written func(t *testing.T, data string)

// payload returns the check of an instance with a payload.
func payload[T any](value T, opts ...discovery.SerializerOption) written {
	return instance(discovery.ServiceInstance[T]{
		Name: "n", ID: "i", Address: "1.2.3.4", Port: 80, Payload: value, RegistrationTime: time.UnixMilli(5),
	}, opts...)
}

// uri returns the check of an instance with a URI spec.
func uri(spec, built string) written {
	i := discovery.ServiceInstance[struct{}]{
		Name: "n", ID: "i", Address: "1.2.3.4", Port: 80, SSLPort: 443, RegistrationTime: time.UnixMilli(5),
		Type: discovery.DynamicSequential, URISpec: discovery.MustParseURISpec(spec),
	}
	if i.URISpec.IsZero() {
		return read(i)
	}
	return func(t *testing.T, data string) {
		instance(i)(t, data)
		if got := i.URI(nil); got != built {
			t.Errorf("the URI is %q, want %q", got, built)
		}
	}
}

// instance returns a check that an instance has Java's bytes, and is what is read from them.
func instance[T any](i discovery.ServiceInstance[T], opts ...discovery.SerializerOption) written {
	return func(t *testing.T, data string) {
		if got := encode(t, serializer[T](t, opts...), i); got != data {
			t.Errorf("wrote\n%s, want\n%s", got, data)
		}
		read(i, opts...)(t, data)
	}
}

// read returns a check that an instance is what is read from Java's bytes, is written back as they are, and that a
// change of another member leaves the payload as it is.
func read[T any](i discovery.ServiceInstance[T], opts ...discovery.SerializerOption) written {
	return func(t *testing.T, data string) {
		s := serializer[T](t, opts...)
		got := decode(t, s, data)
		if !got.Equal(i) && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", i) { // NaN is not equal
			t.Errorf("read %+v, want %+v", got, i)
		}
		if again := encode(t, s, got); again != data {
			t.Errorf("wrote back\n%s, want\n%s", again, data)
		}
		got.ID = "j"
		if again, want := encode(t, s, got), strings.Replace(data, `"id":"i"`, `"id":"j"`, 1); again != want {
			t.Errorf("wrote back\n%s, want\n%s", again, want)
		}
	}
}

type inner struct {
	N int      `json:"n"`
	S *string  `json:"s"`
	L []string `json:"l"`
}

type meta struct {
	Zone   string         `json:"zone"`
	Weight int32          `json:"weight"`
	Inner  inner          `json:"inner"`
	M      map[string]any `json:"m"`
	D      float64        `json:"d"`
	F      float32        `json:"f"`
	Big    int64          `json:"big"`
	Raw    []byte         `json:"raw"`
	When   int64          `json:"when"`
	C      string         `json:"c"`
	OK     bool           `json:"ok"`
}

var bean = meta{
	Zone: "eu", Weight: 5, Inner: inner{N: 3, L: []string{"a", "b"}}, M: map[string]any{}, D: 1, F: 0.1, Big: 1 << 56,
	Raw: []byte{1, 2, 255}, When: 1_700_000_000_000, C: "GREEN", OK: true,
}

var beanClass = discovery.WithPayloadClass("Instances$Meta")

func TestInstanceSerializerWritesWhatJavaWrites(t *testing.T) {
	class := discovery.WithPayloadClass
	checks := map[string][]written{
		"null": {
			payload(struct{}{}), payload[any](nil), payload[*string](nil), payload[[]byte](nil), payload[json.RawMessage](nil),
			payload[map[string]string](nil), payload[*meta](nil, beanClass), read(noPayload(bean), beanClass),
			read(noPayload("")), read(noPayload(0)),
		},
		"String":   {payload("a<b>&é\u2028\u0001\"\\/\t\u007f😀"), payload[any]("a<b>&é\u2028\u0001\"\\/\t\u007f😀")},
		"controls": {payload("\x00\a\b\n\v\f\r\x0e\x1f\u0080\uffff")},
		"Integer": {
			payload(int32(5)), payload(new5[int32]()), payload[any](json.Number("5")), payload(uint16(5)),
			payload(5, class("java.lang.Integer")),
		},
		"Long": {
			payload(int64(5)), payload(5), payload(new5[int64]()), payload(uint32(5)),
			payload(int32(5), class("java.lang.Long")),
		},
		"Short":           {payload(int16(5)), payload(uint8(5))},
		"Byte":            {payload(int8(5))},
		"Float":           {payload(float32(1.5)), payload(1.5, class("java.lang.Float"))},
		"Double":          {payload(1.0), payload[any](json.Number("1.0"))},
		"Double1e10":      {payload(1e10)},
		"Double0.001":     {payload(0.001)},
		"Double1e-4":      {payload(-1.25e-4)},
		"Double1e7":       {payload(1e7)},
		"Double9999999.5": {payload(9999999.5)},
		"Double-0":        {payload(math.Copysign(0, -1))},
		"DoubleNaN":       {payload(math.NaN())},
		"Double-Inf":      {payload(math.Inf(-1))},
		"FloatInf":        {payload(float32(math.Inf(1)))},
		"Boolean":         {payload(true), payload[any](true)},
		"Character":       {payload("c", class("java.lang.Character"))},
		"BigDecimal":      {payload(json.Number("1.50"), class("java.math.BigDecimal"))},
		"BigInteger":      {payload(uint64(7)), payload(json.Number("7"), class("java.math.BigInteger"))},
		"Date":            {payload(int64(1_700_000_000_000), class("java.util.Date"))},
		"UUID":            {payload("00000000-0000-0001-0000-000000000002", class("java.util.UUID"))},
		"enum":            {payload("RED", class("Instances$Color"))},
		"enum-body":       {payload("GREEN", class("Instances$Color"))},
		"byte[]":          {payload([]byte{1, 2, 255})},
		"int[]":           {payload([]int32{1, 2}, class("[I")), payload([2]int{1, 2}, class("[I"))},
		"String[]":        {payload([]string{"a"}, class("[Ljava.lang.String;"))},
		"ArrayList":       {payload([]any{"a", json.Number("1"), json.Number("2")})},
		"Arrays.asList":   {payload([]string{"a"}, class("java.util.Arrays$ArrayList"))},
		"List.of":         {payload([]string{"a"}, class("java.util.ImmutableCollections$List12"))},
		"emptyList":       {payload([]string{}, class("java.util.Collections$EmptyList"))},
		"LinkedHashMap": {
			payload(struct {
				K int            `json:"k"`
				L int64          `json:"l"`
				X []any          `json:"x"`
				N map[string]int `json:"nul"`
			}{1, 2, []any{json.Number("1"), "b"}, nil}, class("java.util.LinkedHashMap")),
			read(withPayload(map[string]any{
				"k": json.Number("1"), "l": json.Number("2"), "x": []any{json.Number("1"), "b"}, "nul": nil,
			})),
			payload(json.RawMessage(`{"@class":"java.util.LinkedHashMap","k":1,"l":2,"x":[1,"b"],"nul":null}`)),
		},
		"HashMap":  {payload(map[string]string{"k": "v"}, class("java.util.HashMap"))},
		"Map.of":   {payload(map[string]string{"k": "v"}, class("java.util.ImmutableCollections$Map1"))},
		"Set":      {payload([]string{"a"}, class("java.util.HashSet")), read(withPayload([]string{"a"}))},
		"Optional": {payload(map[string]bool{"empty": false, "present": true}, class("java.util.Optional"))},
		"bean": {
			payload(bean, beanClass), payload(&bean, beanClass), read(withPayload(bean), class("Other")),
			read(withPayload(inner{}), class("Other")), read(withPayload(bean), discovery.WithoutPayloadClass()),
		},
		"null, enabled": {
			payload(struct{}{}, discovery.WithEnabledMember()), read(withPayload(struct{}{})),
		},
		"bean, enabled":                     {payload(bean, beanClass, discovery.WithEnabledMember())},
		"uri {scheme}://{address}:{port}/x": {uri("{scheme}://{address}:{port}/x", "https://1.2.3.4:80/x")},
		"uri {}":                            {uri("{}", "")},
		"uri { }a":                          {uri("{ }a", "a")},
		"uri a{[}b{]}":                      {uri("a{[}b{]}", "a{b}")},
		"uri ":                              {uri("", "")},
	}
	for _, row := range table(t, "java-writes.txt") {
		label, data := row[0], row[1]
		if len(checks[label]) == 0 {
			t.Errorf("no check of %q", label)
		}
		for n, check := range checks[label] {
			t.Run(fmt.Sprint(label, " ", n), func(t *testing.T) { check(t, data) })
		}
		delete(checks, label)
	}
	for label := range checks {
		t.Errorf("%q is not in the table", label)
	}
}

func new5[T int32 | int64]() *T {
	five := T(5)
	return &five
}

// withPayload returns the instance of the table with a payload.
func withPayload[T any](value T) discovery.ServiceInstance[T] {
	return discovery.ServiceInstance[T]{
		Name: "n", ID: "i", Address: "1.2.3.4", Port: 80, Payload: value, RegistrationTime: time.UnixMilli(5),
	}
}

// noPayload returns the instance of the table with null for a payload of the type of its argument.
func noPayload[T any](T) discovery.ServiceInstance[T] {
	var zero T
	return withPayload(zero)
}

// readOtherwise are the rows of java-reads.txt that Go reads in another way, with what it reads.
var readOtherwise = [][2]string{
	// Java creates objects of classes and finds that they are not what was asked for.
	{`{"name":"n","id":"i","payload":{"zone":"x"}}`, `{"name":"n","id":"i","payload":{"zone":"x"}}`},
	{
		`{"name":"n","id":"i","payload":{"@class":"no.such.C","zone":"x"}}`,
		`{"name":"n","id":"i","payload":{"zone":"x"}}`,
	},
	{`{"name":"n","id":"i","payload":["a","b"]}`, `{"name":"n","id":"i","payload":"b"}`},
	{`{"name":"n","id":"i","payload":[1,2]}`, `{"name":"n","id":"i","payload":[1,2]}`},
	{`{"name":"n","id":"i","payload":[]}`, `{"name":"n","id":"i","payload":[]}`},
	{`{"name":"n","id":"i","payload":5000000000}`, `{"name":"n","id":"i","payload":5000000000}`},
	{`{"name":"n","id":"i","payload":5}`, `{"name":"n","id":"i","payload":5}`},
	{`{"name":"n","id":"i","payload":1}`, `{"name":"n","id":"i","payload":1}`},
	{`{"payload":["java.lang.Long","5"]}`, `{"payload":"5"}`},
	{`{"payload":["java.lang.Long",5.5]}`, `{"payload":5.5}`},
	{`{"payload":["java.lang.Double",1]}`, `{"payload":1}`},
	{`{"payload":["java.util.ArrayList",[1],2]}`, `{"payload":["java.util.ArrayList",[1],2]}`},
	{`{"payload":{"@class":"java.util.ArrayList"}}`, `{"payload":{}}`},
	{`{"payload":{"@class":""}}`, `{"payload":{}}`},
	{`{"payload":{"@class":5}}`, `{"payload":{}}`},
	{`{"payload":["java.util.Date","2023-11-14T22:13:20Z"]}`, `{"payload":"2023-11-14T22:13:20Z"}`},
	{`{"payload":{"@class":"java.util.HashMap","@class":"java.util.TreeMap"}}`, `{"payload":{}}`},
	{
		`{"name":"n","id":"i","payload":{"n":7,"@class":"Instances$Inner"}}`,
		`{"name":"n","id":"i","payload":{"n":7}}`,
	},
	{
		`{"name":"n","id":"i","payload":{"@class":"Instances$Inner","n":7,"more":1}}`,
		`{"name":"n","id":"i","payload":{"more":1,"n":7}}`,
	},
	// Java's instance has a spec without parts, and throws when it is used.
	{`{"uriSpec":{"parts":null}}`, `{}`},
	// Java builds the URI "null".
	{`{"uriSpec":{"parts":[{"value":null,"variable":null}]}}`, `{"parts":[{"value":"","variable":false}]}`},
}

func TestInstanceSerializerReadsWhatJavaReads(t *testing.T) {
	s := serializer[any](t)
	otherwise := make(map[string]string)
	for _, row := range readOtherwise {
		otherwise[row[0]] = row[1]
	}
	seen := make(map[string]bool)
	for _, row := range table(t, "java-reads.txt") {
		data, want := row[1], row[2]
		seen[data] = true
		if other := otherwise[data]; other != "" {
			want = other
		}
		i, err := s.Decode([]byte(data))
		if want == "error" {
			if err == nil || !strings.HasPrefix(err.Error(), "discovery: no instance: ") {
				t.Errorf("%s is %+v, %v", data, i, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if diff := cmp.Diff(parsed(t, want), parsed(t, fieldsOf(t, i))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", data, diff)
		}
		if again := encode(t, s, i); again != data {
			t.Errorf("%s is written back as %s", data, again)
		}
	}
	for data := range otherwise {
		if !seen[data] {
			t.Errorf("%s is not in the table", data)
		}
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// fieldsOf returns the fields of an instance that are not zero as the table has them.
func fieldsOf(t *testing.T, i discovery.ServiceInstance[any]) string {
	t.Helper()
	fields := map[string]any{}
	put := func(name string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			fields[name] = value
		}
	}
	put("name", i.Name)
	put("id", i.ID)
	put("address", i.Address)
	put("port", i.Port)
	put("sslPort", i.SSLPort)
	if i.Payload != nil {
		fields["payload"] = i.Payload
	}
	if !i.RegistrationTime.IsZero() {
		fields["registrationTimeUTC"] = i.RegistrationTime.UnixMilli()
	}
	if i.Type != discovery.Dynamic {
		fields["serviceType"] = i.Type.String()
	}
	if !i.URISpec.IsZero() {
		var parts []any
		for _, part := range i.URISpec.Parts() {
			parts = append(parts, map[string]any{"value": part.Value, "variable": part.Variable})
		}
		fields["parts"] = parts
	}
	put("uri", i.URI(nil))
	if i.Disabled {
		fields["enabled"] = false
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// change is what a program may do to an instance that it has read.
func change[T any](
	t *testing.T, data string, fn func(*discovery.ServiceInstance[T]), opts ...discovery.SerializerOption,
) string {
	t.Helper()
	s := serializer[T](t, opts...)
	i := decode(t, s, data)
	fn(&i)
	return encode(t, s, i)
}

func TestChangedInstanceKeepsWhatItWasReadWith(t *testing.T) {
	const own = ` { "id":"i", "extra":{"a": [1.50,"\u00e9"]}, "port":0, "name":"n"` +
		`, "address":"", "port":0,"extra2":null } tail`
	disable := func(i *discovery.ServiceInstance[struct{}]) { i.Disabled = true }
	for _, tt := range []struct{ name, got, want string }{
		{
			"nothing, with another option",
			change(t, own, func(*discovery.ServiceInstance[struct{}]) {}, discovery.WithEnabledMember()),
			`{"id":"i","extra":{"a": [1.50,"\u00e9"]},"name":"n","address":"","port":0,"extra2":null,"enabled":true}`,
		},
		{
			"some",
			change(t, own, func(i *discovery.ServiceInstance[struct{}]) { i.Address, i.SSLPort = "h", 443 }),
			`{"id":"i","extra":{"a": [1.50,"\u00e9"]},"name":"n","address":"h","port":0,"extra2":null,"sslPort":443}`,
		},
		{"enabled is added", change(t, `{"x":1}`, disable), `{"x":1,"enabled":false}`},
		{"enabled is changed", change(t, `{"enabled":true,"x":1}`, disable), `{"enabled":false,"x":1}`},
		{
			"enabled stays",
			change(t, `{"enabled":null,"x":1}`, func(i *discovery.ServiceInstance[struct{}]) { i.Disabled = false }),
			`{"enabled":true,"x":1}`,
		},
		{
			"a payload without a type",
			change(t, `{"payload":{"@class":"C","a":1},"id":"i"}`, func(i *discovery.ServiceInstance[struct{}]) { i.ID = "j" }),
			`{"payload":{"@class":"C","a":1},"id":"j"}`,
		},
		{
			"members of a bean", change(t,
				`{"payload":{"zone":"x","more":[1.50],"@class":"Sub","inner":{"n":1,"deep":{ }},"more2":{}}}`,
				func(i *discovery.ServiceInstance[beanPart]) { i.Payload.Zone, i.Payload.Inner.N = "y", 2 }, beanClass),
			`{"payload":{"@class":"Sub","zone":"y","inner":{"n":2,"deep":{ }},"more":[1.50],"more2":{}}}`,
		},
		{
			"the class of a map",
			change(t, `{"payload":{"@class":"java.util.TreeMap","k":1.0}}`, func(i *discovery.ServiceInstance[map[string]any]) {
				i.Payload["l"] = 5.0
			}),
			`{"payload":{"@class":"java.util.TreeMap","k":1.0,"l":5.0}}`,
		},
		{
			"a map gets a class",
			change(t, `{"payload":{"k":1}}`, func(i *discovery.ServiceInstance[map[string]int]) { i.Payload["k"] = 2 }),
			`{"payload":{"@class":"java.util.LinkedHashMap","k":2}}`,
		},
		{
			"the class of a set",
			change(t, `{"payload":["java.util.HashSet",["a"]]}`, func(i *discovery.ServiceInstance[[]string]) {
				i.Payload[0] = "b"
			}),
			`{"payload":["java.util.HashSet",["b"]]}`,
		},
		{
			"a list gets a class",
			change(t, `{"payload":["a","b"]}`, func(i *discovery.ServiceInstance[[]string]) { i.Payload[0] = "b" }),
			`{"payload":["java.util.ArrayList",["b","b"]]}`,
		},
		{
			"an Integer", change(t, `{"payload":5}`, func(i *discovery.ServiceInstance[int64]) { i.Payload++ }),
			`{"payload":6}`,
		},
		{
			"a Date",
			change(t, `{"payload":["java.util.Date",5]}`, func(i *discovery.ServiceInstance[int64]) { i.Payload++ }),
			`{"payload":["java.util.Date",6]}`,
		},
		{
			"a BigDecimal",
			change(t, `{"payload":["java.math.BigDecimal",1.50]}`, func(i *discovery.ServiceInstance[float64]) { i.Payload++ }),
			`{"payload":["java.math.BigDecimal",2.5]}`,
		},
		{
			"a Float that was NaN",
			change(t, `{"payload":["java.lang.Float","NaN"]}`, func(i *discovery.ServiceInstance[float64]) { i.Payload = 1 }),
			`{"payload":["java.lang.Float",1.0]}`,
		},
		{
			"a Double that becomes NaN",
			change(t, `{"payload":1.0}`, func(i *discovery.ServiceInstance[float64]) { i.Payload = math.NaN() }),
			`{"payload":["java.lang.Double","NaN"]}`,
		},
		{
			"an enum",
			change(t, `{"payload":["Color","RED"]}`, func(i *discovery.ServiceInstance[string]) { i.Payload = "BLUE" }),
			`{"payload":["Color","BLUE"]}`,
		},
		{
			"another kind",
			change(t, `{"payload":["Color","RED"]}`, func(i *discovery.ServiceInstance[any]) { i.Payload = int64(5) }),
			`{"payload":["java.lang.Long",5]}`,
		},
		{
			"null", change(t, `{"payload":["Color","RED"]}`, func(i *discovery.ServiceInstance[any]) { i.Payload = nil }),
			`{"payload":null}`,
		},
		{
			"not null any more", change(t, `{"payload":null}`, func(i *discovery.ServiceInstance[int]) { i.Payload = 5 }),
			`{"payload":["java.lang.Long",5]}`,
		},
		{
			"the last of several",
			change(t, `{"id":"h","id":"i","name":"n","name":"m"}`, func(i *discovery.ServiceInstance[int]) { i.ID = "j" }),
			`{"id":"j","name":"m"}`,
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, tt.got, tt.want)
		}
	}
	if got := change(t, own, func(*discovery.ServiceInstance[struct{}]) {}); got != own {
		t.Errorf("nothing has changed, and it is %s", got)
	}
}

type beanPart struct {
	Zone  string `json:"zone"`
	Inner struct {
		N int `json:"n"`
	} `json:"inner"`
}

func TestInstanceDoesNotShareItsBytes(t *testing.T) {
	const text = `{"payload":{"a":1},"x":1}`
	s := serializer[json.RawMessage](t)
	data := []byte(text)
	i, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	written, err := s.Encode(i)
	if err != nil || string(written) != text {
		t.Fatalf("the bytes of the caller are those of the instance: %s, %v", written, err)
	}
	clear(written)
	if got := encode(t, s, i); got != text {
		t.Errorf("the bytes that were written are those of the instance: %s", got)
	}
	copied := i
	copied.Payload = json.RawMessage(`{"b":1}`)
	if got := encode(t, s, i); got != text {
		t.Errorf("a changed copy changes the instance: %s", got)
	}
}

func TestDisabledInstanceSaysSo(t *testing.T) {
	i := discovery.ServiceInstance[struct{}]{Name: "n", ID: "i", Disabled: true}
	const want = `{"name":"n","id":"i","address":null,"port":null,"sslPort":null,"payload":null,"registrationTimeUTC":0,` +
		`"serviceType":"DYNAMIC","uriSpec":null,"enabled":false}`
	for _, opts := range [][]discovery.SerializerOption{nil, {discovery.WithEnabledMember()}} {
		if got := encode(t, serializer[struct{}](t, opts...), i); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWithoutPayloadClass(t *testing.T) {
	plain := discovery.WithoutPayloadClass()
	const frame = `{"name":"n","id":"i","address":"1.2.3.4","port":80,"sslPort":null,"payload":%s,` +
		`"registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":null}`
	for want, check := range map[string]written{
		`{"n":3,"s":null,"l":null}`: payload(inner{N: 3}, plain),
		`5`:                         payload(int64(5), plain),
		`["a","b"]`:                 payload([]string{"a", "b"}, plain),
		`["a",["b"]]`:               payload[any]([]any{"a", []any{"b"}}, plain),
		`{"k":[1.0,"x"]}`:           payload(map[string][]any{"k": {json.Number("1.0"), "x"}}, plain),
		`"2026-01-02T03:04:05Z"`:    payload(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), plain),
		`null`:                      payload[map[string]int](nil, plain),
	} {
		check(t, fmt.Sprintf(frame, want))
	}
	if data, err := serializer[float64](t, plain).Encode(withPayload(math.NaN())); err == nil {
		t.Errorf("NaN is %s", data)
	}
}

func build[T any](opts ...discovery.SerializerOption) func() error {
	return func() error {
		_, err := discovery.NewInstanceSerializer[T](opts...)
		return err
	}
}

func TestSerializerThatJavaWouldNotReadIsAnErrorAtBuild(t *testing.T) {
	class, plain := discovery.WithPayloadClass("C"), discovery.WithoutPayloadClass()
	for name, build := range map[string]func() error{
		"struct":              build[meta](),
		"pointer to a struct": build[**meta](),
		"time":                build[time.Time](),
		"func":                build[func()](),
		"chan":                build[chan int](),
		"complex":             build[complex128](),
		"no name":             build[meta](discovery.WithPayloadClass("")),
		"both":                build[meta](class, plain),
		"no payload":          build[struct{}](class),
		"raw":                 build[json.RawMessage](class),
	} {
		if err := build(); !errors.Is(err, framework.ErrBadArguments) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, build := range map[string]func() error{
		"struct": build[meta](class), "plain": build[meta](plain), "any": build[any](), "none": build[struct{}](),
	} {
		if err := build(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInstanceThatHasNoBytes(t *testing.T) {
	for name, err := range map[string]error{
		"a struct in an interface": encodeError(t, withPayload[any](bean)),
		"a func in an interface":   encodeError(t, withPayload[any](func() {})),
		"a func in a map":          encodeError(t, withPayload(map[string]any{"k": func() {}})),
		"NaN in a list":            encodeError(t, withPayload([]float64{math.NaN()})),
		"no number":                encodeError(t, withPayload(json.Number("x"))),
		"raw":                      encodeError(t, withPayload(json.RawMessage("{"))),
		"raw without UTF-8":        encodeError(t, withPayload(json.RawMessage("\"\xff\""))),
		"a circle":                 encodeError(t, withPayload(circle())),
		"port":                     encodeError(t, discovery.ServiceInstance[int]{Port: math.MaxInt32 + 1}),
		"type":                     encodeError(t, discovery.ServiceInstance[int]{Type: 4}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "discovery: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	with := discovery.WithPayloadClass("Instances$Meta")
	got := encode(t, serializer[any](t, with), withPayload[any](bean))
	if !strings.Contains(got, `{"@class":"Instances$Meta",`) {
		t.Errorf("a struct in an interface, with a class: %s", got)
	}
	if got := encode(t, serializer[any](t, with), withPayload[any]("a")); !strings.Contains(got, `"payload":"a"`) {
		t.Errorf("a string in an interface, with a class: %s", got)
	}
}

// A program may choose the class of each object itself.
func TestObjectWithAClassOfItsOwn(t *testing.T) {
	const want = `"payload":{"@class":"com.acme.Meta","k":1}`
	for _, got := range []string{
		encode(t, serializer[map[string]any](t), withPayload(map[string]any{"@class": "com.acme.Meta", "k": 1})),
		encode(t, serializer[any](t), withPayload[any](map[string]any{"@class": "com.acme.Meta", "k": 1})),
		encode(t, serializer[json.RawMessage](t), withPayload(json.RawMessage(`{"@class":"com.acme.Meta","k":1}`))),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
}

func encodeError[T any](t *testing.T, i discovery.ServiceInstance[T]) error {
	t.Helper()
	_, err := serializer[T](t).Encode(i)
	return err
}

func circle() map[string]any {
	m := map[string]any{}
	m["m"] = m
	return m
}

// hostile are bytes that are no instance, or nearly one.
func hostile() [][]byte {
	deep := strings.Repeat("[", 20_000)
	return slices.Concat([][]byte{
		[]byte("{\"name\":\"\xff\"}"), []byte("{\"x\":\"\xed\xa0\x80\"}"), []byte(`{"x":` + deep), []byte("\x1f\x8b\x08"),
		[]byte(`{"x":` + deep + strings.ReplaceAll(deep, "[", "]") + `}`), []byte(strings.Repeat(`{"payload":`, 20_000)),
		[]byte(`{"port":1e999999999}`), []byte(`{"port":` + strings.Repeat("9", 100_000) + `}`),
		[]byte(`{"registrationTimeUTC":-1e999999999}`), []byte(`{"serviceType":99999999999999999999}`),
		[]byte("{\"name\":\"\x01\"}"), []byte(`{"name":"\u12"}`), []byte(`{"a":1 "b":2}`), []byte(`{1:2}`),
		[]byte("\xff\xfe{"),
		[]byte(`{"uriSpec":{"parts":[{"variable":9e9}]}}`), []byte(`{"payload":[`), []byte(`{"payload":["a"`),
		{0},
		nil,
	})
}

func TestHostileBytesAreNoInstance(t *testing.T) {
	s := serializer[any](t)
	for _, data := range hostile() {
		if i, err := s.Decode(data); err == nil || !strings.HasPrefix(err.Error(), "discovery: no instance: ") {
			t.Errorf("%.60q is %.60v, %v", data, i, err)
		}
	}
}

func FuzzDecodeInstance(f *testing.F) {
	for _, name := range []string{"java-writes.txt", "java-reads.txt"} {
		for _, row := range table(f, name) {
			f.Add([]byte(row[1]))
		}
	}
	for _, data := range hostile() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzz[any](t, data)
		fuzz[string](t, data)
		fuzz[int64](t, data)
		fuzz[*float64](t, data)
		fuzz[[]string](t, data)
		fuzz[map[string]any](t, data)
		fuzz[meta](t, data, beanClass)
		fuzz[json.RawMessage](t, data)
		fuzz[struct{}](t, data, discovery.WithEnabledMember())
	})
}

// fuzz checks that what is an instance is written back as it is, and can be changed and copied.
func fuzz[T any](t *testing.T, data []byte, opts ...discovery.SerializerOption) {
	t.Helper()
	s := serializer[T](t, opts...)
	i, err := s.Decode(data)
	if err != nil {
		return
	}
	if again := encode(t, s, i); again != string(data) && len(opts) == 0 {
		t.Fatalf("%q is written back as %q", data, again)
	}
	i.Name += "x"
	changed := encode(t, s, i)
	j := decode(t, s, changed)
	if j.Name != i.Name || !isSame(j.Payload, i.Payload) {
		t.Fatalf("%q is changed to %q: %+v, want %+v", data, changed, j, i)
	}
	fresh := discovery.ServiceInstance[T]{Payload: i.Payload}
	text, err := s.Encode(fresh)
	if err != nil {
		return // it is too deep to be written anew
	}
	if j := decode(t, s, string(text)); !isSame(j.Payload, i.Payload) {
		t.Fatalf("the payload of %q is written as %q: %+v, want %+v", data, text, j.Payload, i.Payload)
	}
}

// isSame reports whether two payloads are equal, as their JSON has them if they have one.
func isSame(a, b any) bool {
	if f, ok := a.(*float64); ok && f != nil { // perhaps NaN
		return fmt.Sprint(*f) == fmt.Sprint(*b.(*float64))
	}
	one, err := json.Marshal(a)
	other, _ := json.Marshal(b)
	return err != nil || string(one) == string(other)
}

// A node of a megabyte cannot hold up a process that writes it back: the time grows with the size alone.
func TestEncodeOfManyUnknownMembersTakesNoLongerThanDecode(t *testing.T) {
	var unknown strings.Builder
	for n := range 40_000 {
		fmt.Fprintf(&unknown, `,"m%d":1`, n)
	}
	for what, data := range map[string]string{
		"instance": `{"name":"orders","id":"a"` + unknown.String() + `}`,
		"payload":  `{"name":"orders","id":"a","payload":{"@class":"com.acme.Meta"` + unknown.String() + `}}`,
	} {
		s := serializer[meta](t, beanClass)
		decoding, encoding := time.Hour, time.Hour // the least of some, on a machine that is busy
		for range 3 {
			begin := time.Now()
			i := decode(t, s, data)
			decoding = min(decoding, time.Since(begin))
			i.Disabled = true
			begin = time.Now()
			encode(t, s, i)
			encoding = min(encoding, time.Since(begin))
		}
		if encoding > 30*decoding { // it was several hundred times as long
			t.Errorf("%s: %v to write back what is read in %v", what, encoding, decoding)
		}
	}
}
