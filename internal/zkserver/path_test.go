package zkserver

import "testing"

// In Java: PathUtils.validatePath.
func TestValidPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/a.b": true, "/...": true, "/a..": true, "/..a": true, "/é": true,
		"/\u4e2d": true,
		"":        false, "a": false, "/a/": false, "//": false, "//a": false, "/a//b": false, "/.": false, "/..": false,
		"/a/.": false, "/a/..": false, "/./a": false, "/a/../b": false, "/\x00": false, "/\x1f": false, "/\x7f": false,
		"/\u0085": false, "/\u00a0": true, "/\ue000": false, "/\uf8ff": false, "/\uf900": true, "/\uffef": true,
		"/\ufff0": false, "/\U0001f600": false,
	} {
		if got := validPath(path); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}

func TestParentOf(t *testing.T) {
	for path, want := range map[string]string{"/a": "/", "/a/b": "/a", "/a/": "/a", "//": "/", "/": "/"} {
		if got, ok := parentOf(path); !ok || got != want {
			t.Errorf("%q: %q, %t", path, got, ok)
		}
	}
	for _, path := range []string{"", "a", "/a\x00"} {
		if got, ok := parentOf(path); ok {
			t.Errorf("%q: %q", path, got)
		}
	}
}
