package zkpath

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJoin(t *testing.T) {
	tests := []struct {
		parent   string
		children []string
		want     string
	}{
		{"", nil, "/"},
		{"/", nil, "/"},
		{"", []string{""}, "/"},
		{"", []string{"/"}, "/"},
		{"/", []string{""}, "/"},
		{"/", []string{"/"}, "/"},
		{"/", []string{"", "/", ""}, "/"},

		{"foo", nil, "/foo"},
		{"/foo", nil, "/foo"},
		{"/foo/", nil, "/foo"},
		{"foo", []string{""}, "/foo"},
		{"foo", []string{"/"}, "/foo"},
		{"/foo", []string{""}, "/foo"},
		{"/foo", []string{"/"}, "/foo"},

		{"", []string{"bar"}, "/bar"},
		{"/", []string{"bar"}, "/bar"},
		{"", []string{"/bar"}, "/bar"},
		{"/", []string{"/bar"}, "/bar"},
		{"", []string{"", "bar"}, "/bar"}, // Java: //bar
		{"/", []string{"/", "bar"}, "/bar"},

		{"foo", []string{"bar"}, "/foo/bar"},
		{"/foo", []string{"bar"}, "/foo/bar"},
		{"foo", []string{"/bar"}, "/foo/bar"},
		{"/foo", []string{"/bar"}, "/foo/bar"},
		{"/foo", []string{"bar/"}, "/foo/bar"},
		{"/foo/", []string{"/bar/"}, "/foo/bar"},

		{"foo", []string{"bar", "baz"}, "/foo/bar/baz"},
		{"foo", []string{"bar", "baz", "qux"}, "/foo/bar/baz/qux"},
		{"/foo", []string{"/bar", "/baz"}, "/foo/bar/baz"},
		{"/foo/", []string{"/bar/", "/baz/"}, "/foo/bar/baz"},
		{"foo", []string{"", ""}, "/foo"},
		{"foo", []string{"bar", ""}, "/foo/bar"},
		{"foo", []string{"", "baz"}, "/foo/baz"},
		{"/foo/bar", []string{"baz/qux"}, "/foo/bar/baz/qux"},

		{"/foo", []string{"//bar"}, "/foo//bar"}, // bad input stays bad
		{"/foo//", []string{"bar"}, "/foo//bar"},
	}
	for _, tt := range tests {
		if got := Join(tt.parent, tt.children...); got != tt.want {
			t.Errorf("Join(%q, %q) = %q, want %q", tt.parent, tt.children, got, tt.want)
		}
	}
}

func TestJoinAllocates(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Join("/locks/orders", "lock-0000000001") }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		path string
		want []string
	}{
		{"", nil},
		{"/", nil},
		{"/test", []string{"test"}},
		{"/test/one", []string{"test", "one"}},
		{"/test/one/two", []string{"test", "one", "two"}},
		{"/test/", []string{"test"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Split(tt.path)); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", tt.path, diff)
		}
	}
}

func TestPathAndNode(t *testing.T) {
	tests := []struct {
		path, parent, node string
	}{
		{"/", "/", ""},
		{"/one", "/", "one"},
		{"/one/two", "/one", "two"},
		{"/one/two/three", "/one/two", "three"},
		{"/one/", "/one", ""},
		{"", "/", ""},
		{"one", "/", "one"},
	}
	for _, tt := range tests {
		if parent, node := PathAndNode(tt.path); parent != tt.parent || node != tt.node {
			t.Errorf("PathAndNode(%q) = %q, %q, want %q, %q", tt.path, parent, node, tt.parent, tt.node)
		}
		if got := Parent(tt.path); got != tt.parent {
			t.Errorf("Parent(%q) = %q, want %q", tt.path, got, tt.parent)
		}
		if got := Node(tt.path); got != tt.node {
			t.Errorf("Node(%q) = %q, want %q", tt.path, got, tt.node)
		}
	}
}

func TestSequentialSuffix(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/a/lock-0000000042", "0000000042"},
		{"lock-0000000042", "0000000042"},
		{"0000000042", "0000000042"},
		{"42", "42"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := SequentialSuffix(tt.path); got != tt.want {
			t.Errorf("SequentialSuffix(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func BenchmarkJoin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Join("/locks/orders", "lock-0000000001")
	}
}
