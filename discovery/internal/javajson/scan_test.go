package javajson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// texts are texts of JSON and what is none.
func texts() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return []string{
		"", " ", "\ufeff", "\ufeff\ufeff{}", "{", "}", "[", "]", "{}", "[]", "{]", "[}", "{} {", "[]]", "\x00", "{\x00}",
		`{"a":1}`, "\t\r\n { \"a\" : 1 } x", "{\v}", `{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a":}`, `{"a"}`, `{a:1}`, `{1:1}`,
		`{"a":1 "b":2}`, `{"a":1,,"b":2}`, `{"a"::1}`, `[1,]`, `[,1]`, `[1 2]`, `[1:2]`, `[1}`, `{"a":1]`,
		`[true,false,null]`, `[tru]`, `[truee]`, `[nul`, `[True]`, `[nulll]`,
		`[0,-0,1.5,-1.50e+10,1E-2,0e0,10]`, `[01]`, `[-]`, `[+1]`, `[1.]`, `[.5]`, `[1e]`, `[1e+]`, `[--1]`, `[0x1]`, `[1`,
		`[-`, `[1.`, `[1e`, `[NaN]`, `[Infinity]`,
		`["\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00\ud800"]`, `["\x"]`, `["\u12"]`, `["\u12g4"]`, `["\`, `["\u`, `["\u123`, `["`,
		`a`, `\u00e9`, `"a"`, ` "a" `, "\xff", "\t", `\\`, `"`, `""`, "null", "é", `a"b`,
		"[\"\n\"]", "[\"\x1f\"]", "[\"\x7f\"]", "[\"\xff\"]", "[\"\xed\xa0\x80\"]", "[]\xff", "[\xff]", "{\"\xff\":1}",
		`{"\u0061":1,"a":2,"\ud800":3,"":4,"\n":5,"\/":6}`, `{"\u006":1}`, "{\"\t\":1}",
		`{"a":{"b":[{"c":[[]]},"]}"]}}`, `{"a":[}`, `{"a":{]}`,
		deep(maxNesting), deep(maxNesting + 1), deep(maxNesting + 2), "[" + strings.Repeat(`{"a":[`, maxNesting),
		`{"a":` + deep(maxNesting) + "}", `{"a":` + deep(maxNesting+1) + "}",
		strings.Repeat("[", 1<<20), strings.Repeat(`{"":`, 1<<18), strings.Repeat(`[{"":`, 1<<18),
	}
}

func TestSplitIsEncodingJSON(t *testing.T) {
	for _, text := range texts() {
		wantSplit(t, []byte(text))
		wantText(t, []byte(text))
	}
}

func FuzzSplitIsEncodingJSON(f *testing.F) {
	for _, text := range texts() {
		if len(text) < 1000 { // from longer ones the fuzzer makes little of
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		wantSplit(t, data)
		wantText(t, data)
	})
}

// wantSplit compares what is split with what encoding/json finds.
func wantSplit(t *testing.T, data []byte) {
	t.Helper()
	was := bytes.Clone(data)
	wantMembers, wantErr := decodedMembers(data)
	members, err := Members(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("members of %.100q: %v, encoding/json: %v", data, err, wantErr)
	}
	if diff := cmp.Diff(wantMembers, members); err == nil && len(members) > 0 && diff != "" {
		t.Fatalf("members of %.100q: %s", data, diff)
	}
	wantElements, wantErr := decodedElements(data)
	elements, err := Elements(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("elements of %.100q: %v, encoding/json: %v", data, err, wantErr)
	}
	if diff := cmp.Diff(wantElements, elements); err == nil && diff != "" {
		t.Fatalf("elements of %.100q: %s", data, diff)
	}
	if !bytes.Equal(was, data) {
		t.Fatalf("%.100q is changed", was)
	}
}

// wantText compares a string with that of encoding/json.
func wantText(t *testing.T, data []byte) {
	t.Helper()
	for _, quoted := range [][]byte{data, slices.Concat([]byte{'"'}, data, []byte{'"'})} {
		var want string
		wantErr := json.Unmarshal(quoted, &want)
		if got, err := Text(quoted); got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%.100q is %q, %v; encoding/json: %q, %v", quoted, got, err, want, wantErr)
		}
	}
}

// decodedMembers returns the members that encoding/json finds.
func decodedMembers(data []byte) (members []Member, err error) {
	err = decoded(data, '{', func(d *json.Decoder) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		value := json.RawMessage{}
		err = d.Decode(&value)
		members = append(members, Member{key.(string), value})
		return err
	})
	return members, err
}

// decodedElements returns the elements that encoding/json finds.
func decodedElements(data []byte) (elements [][]byte, err error) {
	err = decoded(data, '[', func(d *json.Decoder) error {
		value := json.RawMessage{}
		err := d.Decode(&value)
		elements = append(elements, value)
		return err
	})
	return elements, err
}

// decoded calls each at every member or element. Unlike encoding/json, it refuses what is not UTF-8.
func decoded(data []byte, opening json.Delim, each func(*json.Decoder) error) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(data))
	switch token, err := d.Token(); {
	case err != nil:
		return err
	case token != opening:
		return fmt.Errorf("%v", token)
	}
	for d.More() {
		if err := each(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if !utf8.Valid(data[:d.InputOffset()]) {
		return errors.New("not UTF-8")
	}
	return nil
}

func BenchmarkMembers(b *testing.B) {
	data := []byte(`{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"eu",` +
		`"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC",` +
		`"uriSpec":{"parts":[{"value":"scheme","variable":true}]}}`)
	for name, members := range map[string]func([]byte) ([]Member, error){
		"scanner": Members, "encoding json": decodedMembers,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := members(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
