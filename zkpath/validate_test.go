package zkpath

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name       string
		path       string
		sequential bool
		want       string // part of the error
	}{
		{name: "root", path: "/"},
		{name: "one name", path: "/a"},
		{name: "many names", path: "/a/b/c-0000000001"},
		{name: "blank", path: "/a b"},
		{name: "last of ASCII", path: "/~"},
		{name: "umlauts", path: "/größe"},
		{name: "first after the controls", path: "/\u00a0"},
		{name: "Chinese", path: "/节点/锁"},
		{name: "last before the surrogates", path: "/\ud7ff"},
		{name: "first after private use", path: "/\uf900"},
		{name: "last of all", path: "/\uffef"},
		{name: "dots in names", path: "/.a/b./c.d/.../..e/f.."},

		{name: "empty", path: "", want: "empty path at byte 0"},
		{name: "relative", path: "a/b", want: "no slash at byte 0"},
		{name: "slash at the end", path: "/a/", want: "slash at byte 2"},
		{name: "two slashes", path: "//", want: "empty name at byte 1"},
		{name: "empty name at the start", path: "//a", want: "empty name at byte 1"},
		{name: "empty name inside", path: "/a//b", want: "empty name at byte 3"},
		{name: "dot", path: "/.", want: "relative name at byte 1"},
		{name: "dot inside", path: "/a/./b", want: "relative name at byte 3"},
		{name: "dot at the end", path: "/a/.", want: "relative name at byte 3"},
		{name: "two dots", path: "/..", want: "relative name at byte 1"},
		{name: "two dots inside", path: "/a/../b", want: "relative name at byte 3"},
		{name: "two dots at the end", path: "/a/..", want: "relative name at byte 3"},
		{name: "null", path: "/a\x00", want: "invalid character at byte 2"},
		{name: "first control", path: "/\x01", want: "invalid character"},
		{name: "last control", path: "/\x1f", want: "invalid character"},
		{name: "delete", path: "/\x7f", want: "invalid character"},
		{name: "first of the second controls", path: "/\u0080", want: "invalid character"},
		{name: "last of the second controls", path: "/\u009f", want: "invalid character"},
		{name: "first of private use", path: "/\ue000", want: "invalid character"},
		{name: "last of private use", path: "/\uf8ff", want: "invalid character"},
		{name: "specials", path: "/ä\ufff0", want: "invalid character at byte 3"},
		{name: "replacement character", path: "/\ufffd", want: "invalid character"},
		{name: "last of the plane", path: "/\uffff", want: "invalid character"},
		{name: "surrogates in Java", path: "/\U0001f600", want: "invalid character"},
		{name: "no UTF-8", path: "/a\xff", want: "invalid UTF-8 at byte 2"},
		{name: "a surrogate as UTF-8", path: "/\xed\xa0\x80", want: "invalid UTF-8"},
		{name: "half a character", path: "/\xc3", want: "invalid UTF-8"},

		{name: "sequential root", path: "/", sequential: true},
		{name: "sequential", path: "/a/b-", sequential: true},
		{name: "sequential, slash at the end", path: "/a/", sequential: true},
		{name: "sequential, dot at the end", path: "/a/.", sequential: true},
		{name: "sequential, two dots at the end", path: "/a/..", sequential: true},
		{name: "sequential, empty", path: "", sequential: true, want: "empty path"},
		{name: "sequential, relative", path: "a", sequential: true, want: "no slash"},
		{name: "sequential, two slashes", path: "//", sequential: true, want: "empty name"},
		{name: "sequential, two slashes at the end", path: "/a//", sequential: true, want: "empty name"},
		{name: "sequential, dot inside", path: "/./", sequential: true, want: "relative name"},
		{name: "sequential, null", path: "/a/\x00", sequential: true, want: "invalid character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(tt.path, tt.sequential)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, zk.ErrInvalidPath) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate(%q, %t) = %v, want %s", tt.path, tt.sequential, err, tt.want)
			}
		})
	}
}

func TestValidateAllocates(t *testing.T) {
	for _, path := range []string{"/", "/curator/locks/orders/lock-0000000001", "/größe/节点"} {
		if n := testing.AllocsPerRun(100, func() { _ = Validate(path, false) }); n != 0 {
			t.Errorf("%v allocations for %s", n, path)
		}
	}
}

func TestValidateNamespace(t *testing.T) {
	tests := []struct {
		namespace string
		wantErr   bool
	}{
		{"", false},
		{"app", false},
		{"team/app", false},
		{"/app", true},
		{"app/", true},
		{"a//b", true},
		{"..", true},
		{"a\x00", true},
	}
	for _, tt := range tests {
		err := ValidateNamespace(tt.namespace)
		if (err != nil) != tt.wantErr || err != nil && !errors.Is(err, zk.ErrInvalidPath) {
			t.Errorf("ValidateNamespace(%q) = %v, want an error: %t", tt.namespace, err, tt.wantErr)
		}
	}
}

// FuzzValidate compares with what a server does, character by character of UTF-16.
func FuzzValidate(f *testing.F) {
	for _, path := range []string{
		"", "/", "//", "/a", "/a/", "/.", "/..", "/a/./b", "/a\x00", "/\ue000", "/\U0001f600",
	} {
		f.Add(path, false)
		f.Add(path, true)
	}
	f.Fuzz(func(t *testing.T, path string, sequential bool) {
		err := Validate(path, sequential)
		if err != nil && !errors.Is(err, zk.ErrInvalidPath) {
			t.Fatal(err)
		}
		if sequential {
			path += "1"
		}
		if want := utf8.ValidString(path) && serverAccepts(utf16.Encode([]rune(path))); (err == nil) != want {
			t.Errorf("Validate(%q, %t) = %v, the server accepts it: %t", path, sequential, err, want)
		}
	})
}

// serverAccepts is the PathUtils.validatePath of a server.
func serverAccepts(path []uint16) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	if len(path) == 1 {
		return true
	}
	if path[len(path)-1] == '/' {
		return false
	}
	for i := 1; i < len(path); i++ {
		c, last := path[i], path[i-1]
		ends := i+1 == len(path) || path[i+1] == '/'
		switch {
		case c == '/' && last == '/',
			c == '.' && last == '.' && path[i-2] == '/' && ends,
			c == '.' && last == '/' && ends,
			c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0:
			return false
		}
	}
	return true
}

func BenchmarkValidate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = Validate("/curator/locks/orders/_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1-lock-0000000001", false)
	}
}
