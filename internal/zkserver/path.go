package zkserver

import (
	"strings"
	"unicode/utf16"
)

const (
	rootPath   = "/"
	systemPath = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// undeletable reports whether no client may delete the node at path.
func undeletable(path string) bool {
	return path == "" || path == rootPath || path == systemPath || path == quotaPath || path == configPath
}

// parentOf splits the path at the last slash, as a server does before it validates the path.
func parentOf(path string) (parent string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	if i == 0 {
		return rootPath, true
	}
	return path[:i], true
}

// split returns the parent and the name of a node whose path is valid.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return rootPath, path[1:]
	}
	return path[:i], path[i+1:]
}

// validPath reports whether a server accepts the path. Java checks UTF-16 units, so that characters beyond the first
// plane are invalid.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for _, segment := range strings.Split(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	for _, r := range path {
		if invalidRune(r) {
			return false
		}
	}
	return true
}

func invalidRune(r rune) bool {
	if len(utf16.AppendRune(nil, r)) > 1 {
		return true // surrogates
	}
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
