package javajson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type (
	Base struct {
		A      int
		Hidden string `json:"h"`
	}
	Other struct {
		A      int // hides Base.A, and is hidden by it
		Tagged int `json:"t"`
	}
	Deeper struct{ Base }
	lower  struct{ FromLower int }
	Ring   struct {
		*Ring
		N int
	}
	named string
	tags  struct {
		Base
		*Other
		lower
		Named    Base `json:"named"`
		Skipped  int  `json:"-"`
		Dash     int  `json:"-,"` //nolint:staticcheck // wrong on purpose
		private  int
		Bad      int             `json:"a\"b"` //nolint:staticcheck // wrong on purpose
		Odd      int             `json:"ключ $%"`
		Empty    string          `json:"empty,omitempty"`
		EmptyMap map[string]int  `json:",omitempty"`
		EmptyPtr *int            `json:",omitempty"`
		Struct   struct{ X int } `json:",omitempty"`
		Zero     time.Time       `json:"zero,omitzero"`
		ZeroPtr  *time.Time      `json:"zeroPtr,omitzero"`
		ZeroS    struct{ X int } `json:",omitzero"`
		Quoted   int64           `json:",string"`
		QuotedS  string          `json:",string"`
		QuotedP  *bool           `json:",string"`
		NotQ     []int           `json:",string"` //nolint:staticcheck // wrong on purpose
		Any      any
		Keys     map[int]named
		TextKeys map[netip.Addr]float64
		Bytes    []byte
		Named2   []named
		Array    [2]byte
		Addr     netip.Addr
		AddrPtr  *netip.Addr
		When     time.Time
		Number   json.Number
		Raw      json.RawMessage
		Big      *big.Int
		F32      float32
		F64      float64
		U        uint64
		Ptr      **int
		Func     func() `json:"-"`
	}
)

func values() []any {
	one := 1
	ptr := &one
	yes := true
	addr := netip.MustParseAddr("::1")
	return []any{
		nil, true, 1, "a", 1.5, []int(nil),
		[]int{},
		map[string]int(nil),
		map[string]int{"b": 1, "a": 2},
		&one, (*int)(nil),
		[]any{nil, 1, "x", 2.5, []string{"y"}, map[string]any{"k": nil}},
		struct{}{},
		Deeper{Base{1, "h"}},
		Ring{N: 1},
		tags{},
		&tags{},
		tags{
			Base: Base{1, "x"}, Other: &Other{2, 3}, lower: lower{4}, Named: Base{5, "y"}, Skipped: 6, Dash: 7, private: 8,
			Bad: 9, Odd: 10, Empty: "e", EmptyMap: map[string]int{"a": 1}, EmptyPtr: ptr, Zero: time.Unix(1, 0).UTC(),
			ZeroPtr: &time.Time{}, Quoted: 11, QuotedS: `a"b`, QuotedP: &yes, NotQ: []int{1}, Any: Base{},
			Keys: map[int]named{10: "a", 9: "b"}, TextKeys: map[netip.Addr]float64{addr: 1}, Bytes: []byte{0xff},
			Named2: []named{"<&>\u2028"}, Array: [2]byte{1, 2}, Addr: addr, AddrPtr: &addr, When: time.Unix(2, 3).UTC(),
			Number: "1.50", Raw: json.RawMessage(` { "a" : "\u00e9 " } `), Big: big.NewInt(1), F32: 0.1, F64: 1e21,
			U: math.MaxUint64, Ptr: &ptr,
		},
	}
}

// The JSON is another than that of encoding/json only in how strings and floating point numbers are written.
func TestAppendIsEncodingJSON(t *testing.T) {
	for _, value := range values() {
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append(nil, reflect.ValueOf(value), nil)
		if err != nil {
			t.Errorf("%+v: %v", value, err)
			continue
		}
		if diff := cmp.Diff(tokens(t, want), tokens(t, got)); diff != "" {
			t.Errorf("%+v: %s, want %s\n%s", value, got, want, diff)
		}
		compact := bytes.Buffer{}
		if err := json.Compact(&compact, got); err != nil || !bytes.Equal(compact.Bytes(), got) {
			t.Errorf("%s has spaces, %v", got, err)
		}
	}
}

// tokens returns the tokens of a JSON, the numbers as floating point numbers.
func tokens(t *testing.T, text []byte) (tokens []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return tokens
		}
		tokens = append(tokens, token)
	}
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

type failingText struct{ bad bool }

func (f failingText) MarshalText() ([]byte, error) { return nil, fmt.Errorf("no %v", f.bad) }

type noJSON struct{}

func (noJSON) MarshalJSON() ([]byte, error) { return []byte("{"), nil }

func TestAppendRefusesWhatHasNoJSON(t *testing.T) {
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	for _, value := range []any{
		func() {}, make(chan int), complex(1, 1), math.NaN(), math.Inf(1), float32(math.Inf(-1)), json.Number("x"),
		json.Number(`"1"`),
		failing{},
		failingText{},
		noJSON{},
		map[failingText]int{{}: 1},
		map[bool]int{true: 1},
		[]any{failing{}},
		map[string]any{"k": failing{}},
		struct{ F any }{failing{}},
		r, json.RawMessage("{"),
	} {
		if got, err := Append(nil, reflect.ValueOf(value), nil); err == nil {
			t.Errorf("%T is %s", value, got)
		}
	}
}

func TestAppendKeepsUnknownMembers(t *testing.T) {
	type part struct {
		N int `json:"n"`
	}
	value := struct {
		A    int             `json:"a"`
		P    part            `json:"p"`
		Q    *part           `json:"q"`
		Gone string          `json:"gone,omitempty"`
		M    map[string]part `json:"m"`
	}{A: 1, P: part{2}, Q: &part{3}, M: map[string]part{"x": {4}}}
	const was = ` {"z": [1.50], "a":0, "A":7, "gone":"x", "p":{"n":0,"more":{ }}, "q":{"more":null}, "m":{"x":{"more":1}},
		"z": "é" } `
	got, err := Append(nil, reflect.ValueOf(value), []byte(was))
	const want = `{"a":1,"p":{"n":2,"more":{ }},"q":{"n":3,"more":null},"m":{"x":{"n":4}},"z":"é"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{
		"", "a<b>&é\u2028\u0001\"\\/\t\u007f😀", "\xff", "\xed\xa0\x80", "\U0010ffff\uffff\u0000",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(text, &back); err != nil || back != string([]rune(s)) {
			t.Fatalf("%q is %s, which is %q, %v", s, text, back, err)
		}
		if !utf8.Valid(text) {
			t.Fatalf("%q is %q", s, text)
		}
	})
}

func TestAppendFloatIsJavas(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		bits int
		want string
	}{
		{0, 64, "0.0"},
		{math.Copysign(0, -1), 64, "-0.0"},
		{1, 64, "1.0"},
		{-1.5, 64, "-1.5"},
		{100, 64, "100.0"},
		{0.001, 64, "0.001"},
		{0.0009999, 64, "9.999E-4"},
		{9999999, 64, "9999999.0"},
		{1e7, 64, "1.0E7"},
		{1.25e10, 64, "1.25E10"},
		{-1e-10, 64, "-1.0E-10"},
		{math.MaxFloat64, 64, "1.7976931348623157E308"},
		{math.SmallestNonzeroFloat64, 64, "4.9E-324"},
		{1e-323, 64, "9.9E-324"},
		{math.SmallestNonzeroFloat32, 32, "1.4E-45"},
		{float64(float32(0.1)), 32, "0.1"},
		{float64(float32(1e10)), 32, "1.0E10"},
		{math.MaxFloat32, 32, "3.4028235E38"},
	} {
		if got := string(AppendFloat([]byte("1.5e"), tt.f, tt.bits)); got != "1.5e"+tt.want {
			t.Errorf("%v is %s, want %s", tt.f, got, tt.want)
		}
	}
}

func TestMembersAreBytesOfTheText(t *testing.T) {
	const text = "\ufeff { \"a\" : [ 1.50 , {\"b\":1}] , \"\\u0061\":\"\\u00e9\",\"\":null} rest \xff"
	got, err := Members([]byte(text))
	want := []Member{
		{"a", []byte(`[ 1.50 , {"b":1}]`)},
		{"a", []byte(`"\u00e9"`)},
		{"", []byte("null")},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if last := Last(got, "a"); string(last) != `"\u00e9"` {
		t.Errorf("the last is %s", last)
	}
	if last := Last(got, "b"); last != nil {
		t.Errorf("b is %s", last)
	}
	elements, err := Elements([]byte(` [ 1 , "x" ] `))
	if err != nil || len(elements) != 2 || string(elements[0]) != "1" || string(elements[1]) != `"x"` {
		t.Errorf("%q, %v", elements, err)
	}
	for _, text := range []string{
		"", " ", "[]", "1", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, "{\"\xff\":1}", "{1:1}",
	} {
		if got, err := Members([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
