package zkpath

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestNamespace(t *testing.T) {
	tests := []struct {
		namespace, path string
		sequential      bool
		want            string
	}{
		{"", "/", false, "/"},
		{"", "/a/b", false, "/a/b"},
		{"", "/a/", true, "/a/"},
		{"ns", "/", false, "/ns"},
		{"ns", "/a", false, "/ns/a"},
		{"ns", "/ns", false, "/ns/ns"},
		{"ns", "/ns/a", false, "/ns/ns/a"},
		{"ns", "/a/", true, "/ns/a/"},
		{"ns", "/", true, "/ns/"},
		{"my/ns", "/a/b", false, "/my/ns/a/b"},
	}
	for _, tt := range tests {
		got, err := FixForNamespace(tt.namespace, tt.path, tt.sequential)
		if err != nil || got != tt.want {
			t.Errorf("FixForNamespace(%q, %q, %t) = %q, %v, want %q",
				tt.namespace, tt.path, tt.sequential, got, err, tt.want)
		}
		if got := StripNamespace(tt.namespace, tt.want); got != tt.path {
			t.Errorf("StripNamespace(%q, %q) = %q, want %q", tt.namespace, tt.want, got, tt.path)
		}
	}
}

func TestFixForNamespaceInvalid(t *testing.T) {
	for _, path := range []string{"", "a", "/a/", "/a//b", "/.."} {
		if got, err := FixForNamespace("ns", path, false); !errors.Is(err, zk.ErrInvalidPath) || got != "" {
			t.Errorf("FixForNamespace(%q) = %q, %v, want zk.ErrInvalidPath", path, got, err)
		}
	}
}

func TestStripNamespaceOutside(t *testing.T) {
	for _, path := range []string{
		"", "/", "/n", "/nsfoo", "/nsfoo/ns", "/a/ns", "/zookeeper/config", "ns", "ns/a", "xns",
	} {
		if got := StripNamespace("ns", path); got != path {
			t.Errorf("StripNamespace(%q) = %q, want it unchanged", path, got)
		}
	}
}
