package zkpath

import (
	"fmt"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
)

// Validate returns nil if a server accepts path as the path of a node, and otherwise an error that matches
// [zk.ErrInvalidPath] and names the fault. A valid path starts with a slash, does not end with one unless it is the
// root, has no empty name and no name "." or "..", and is UTF-8 without control characters, private-use characters, the
// block from U+FFF0 and everything above U+FFFF.
//
// The server appends digits to the path of a sequential node, so with sequential the last name may also be
// empty, "." or "..": "/queue/" is fine.
//
// In Java: PathUtils.validatePath.
func Validate(path string, sequential bool) error {
	if at, reason := check(path, sequential); reason != "" {
		return fmt.Errorf("%w: %q: %s at byte %d", zk.ErrInvalidPath, path, reason, at)
	}
	return nil
}

// ValidateNamespace returns nil if ns can be the namespace of a client: "" for none, or a valid path without
// its first slash. The error matches [zk.ErrInvalidPath].
//
// In Java: the check of CuratorFrameworkFactory.Builder.namespace.
func ValidateNamespace(ns string) error {
	switch {
	case ns == "":
		return nil
	case ns[0] == '/':
		return badNamespace(ns, "write it without the slash in front")
	case ns[len(ns)-1] == '/':
		return badNamespace(ns, "write it without the slash at the end")
	}
	if at, reason := check("/"+ns, false); reason != "" {
		return badNamespace(ns, fmt.Sprintf("%s at byte %d", reason, at-1))
	}
	return nil
}

func badNamespace(ns, reason string) error {
	return fmt.Errorf("%w: namespace %q: %s", zk.ErrInvalidPath, ns, reason)
}

// check returns the fault of a path and its place, or no reason.
func check(path string, sequential bool) (at int, reason string) {
	switch path {
	case "":
		return 0, "empty path"
	case "/":
		return 0, ""
	}
	if path[0] != '/' {
		return 0, "no slash"
	}
	start := 1 // of the name under way
	for i := 1; i < len(path); {
		switch c := path[i]; {
		case c == '/':
			if reason := checkName(path[start:i]); reason != "" {
				return start, reason
			}
			start = i + 1
			i++
		case c < 0x20 || c == 0x7f:
			return i, "invalid character"
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRuneInString(path[i:])
			if r == utf8.RuneError && size == 1 {
				return i, "invalid UTF-8"
			}
			if !validRune(r) {
				return i, "invalid character"
			}
			i += size
		}
	}
	if sequential { // the digits make the last name a good one
		return 0, ""
	}
	if start == len(path) {
		return start - 1, "slash"
	}
	return start, checkName(path[start:])
}

func checkName(name string) (reason string) {
	switch name {
	case "":
		return "empty name"
	case ".", "..":
		return "relative name"
	}
	return ""
}

// validRune reports whether a server takes a character that is not ASCII. It looks at UTF-16, where everything
// above U+FFFF is a pair of surrogates, which are in a range that it refuses.
func validRune(r rune) bool {
	return r > 0x9f && (r < 0xd800 || r > 0xf8ff) && r < 0xfff0
}
