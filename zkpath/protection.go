package zkpath

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

const (
	protectedStart     = "_c_"
	protectionIDLength = 36                                                  // of a UUID as text
	protectedLength    = len(protectedStart) + protectionIDLength + len("-") // of the whole prefix
)

// NewProtectionID returns a new identifier for [Protect]: a random UUID as text, in lower case, with dashes.
//
// In Java: UUID.randomUUID().toString().
func NewProtectionID() string {
	var id [16]byte
	rand.Read(id[:]) // has no error: it ends the program instead
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	var text [protectionIDLength]byte
	hex.Encode(text[:8], id[:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// Protect returns name with the prefix of id in front, or name itself if there is no id.
//
// In Java: ProtectedUtils.toProtectedZNode.
func Protect(id, name string) string {
	if id == "" {
		return name
	}
	return protectedStart + id + "-" + name
}

// ProtectPath is [Protect] for the last name of path.
//
// In Java: ProtectedUtils.toProtectedZNodePath.
func ProtectPath(id, path string) string {
	if id == "" {
		return path
	}
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i] + protectedStart + id + "-" + path[i:]
}

// ProtectedPrefix returns how the names of all nodes start that are protected with id: "_c_", id and a dash.
//
// In Java: ProtectedUtils.getProtectedPrefix.
func ProtectedPrefix(id string) string {
	return protectedStart + id + "-"
}

// IsProtected reports whether name starts with a prefix as [Protect] makes it, and goes on after it.
//
// In Java: ProtectedUtils.isProtectedZNode.
func IsProtected(name string) bool {
	_, ok := ProtectedID(name)
	return ok
}

// ProtectedID returns the identifier in a protected name, and whether name is one.
//
// In Java: ProtectedUtils.extractProtectedId.
func ProtectedID(name string) (id string, ok bool) {
	if len(name) <= protectedLength || name[protectedLength-1] != '-' ||
		!strings.HasPrefix(name, protectedStart) {
		return "", false
	}
	id = name[len(protectedStart) : protectedLength-1]
	if !isUUID(id) {
		return "", false
	}
	return id, true
}

// Normalize returns name without the prefix of a protected name, or name itself if it is none.
//
// In Java: ProtectedUtils.normalize.
func Normalize(name string) string {
	if IsProtected(name) {
		return name[protectedLength:]
	}
	return name
}

// NormalizePath is [Normalize] for the last name of path.
//
// In Java: ProtectedUtils.normalizePath.
func NormalizePath(path string) string {
	i := strings.LastIndexByte(path, '/') + 1
	if name := path[i:]; IsProtected(name) {
		return path[:i] + name[protectedLength:]
	}
	return path
}

// isUUID takes upper case too, as Java does.
func isUUID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return false
			}
		}
	}
	return true
}
