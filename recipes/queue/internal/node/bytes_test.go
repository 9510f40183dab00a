package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestBytesOfItemsAreThoseOfJava(t *testing.T) {
	tests := []struct {
		items []string
		bytes string
	}{
		{nil, "00010001 02"},
		{[]string{""}, "00010001 01 00000000 02"},
		{[]string{"hello"}, "00010001 01 00000005 68656c6c6f 02"},
		{[]string{"one", "", "three"}, "00010001 01 00000003 6f6e65 01 00000000 01 00000005 7468726565 02"},
	}
	for _, tt := range tests {
		var parts [][]byte
		for _, item := range tt.items {
			parts = append(parts, []byte(item))
		}
		data, err := Encode(nil, parts...)
		if want := unhex(t, tt.bytes); err != nil || !bytes.Equal(data, want) {
			t.Errorf("encodeItems(%q) = %x, %v, want %x", tt.items, data, err, want)
		}
		for _, trailer := range []string{"", "behind the end"} { // which Java does not read either
			got, rest, err := Decode(append(unhex(t, tt.bytes), trailer...))
			if diff := cmp.Diff(parts, got); diff != "" || err != nil || string(rest) != trailer {
				t.Errorf("decodeItems(%x): %v (-want +got):\n%s", data, err, diff)
			}
		}
	}
}

var hostile = []string{
	"",
	"0001",
	"00010001",
	"00010002 02",
	"00000001 02",
	"00010001 03",
	"00010001 01",
	"00010001 01 0000",
	"00010001 01 00000005",
	"00010001 01 00000005 68656c6c",
	"00010001 01 00000005 68656c6c6f",
	"00010001 01 7fffffff 00 02",
	"00010001 01 80000000 00 02",
	"00010001 01 ffffffff 00 02",
	"00010001 01 00000001 61 01",
}

func TestHostileBytesAreCorrupt(t *testing.T) {
	for _, s := range hostile {
		if items, _, err := Decode(unhex(t, s)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("decodeItems(%s) = %q, %v", s, items, err)
		}
	}
}

func FuzzDecodeItems(f *testing.F) {
	for _, s := range hostile {
		f.Add(unhex(f, s))
	}
	f.Add(unhex(f, "00010001 01 00000003 6f6e65 01 00000000 01 00000005 7468726565 02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, trailer, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%x: %v", data, err)
			}
			return
		}
		again, err := Encode(trailer, items...)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("%x is encoded as %x, %v", data, again, err)
		}
	})
}
