package jute

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

// AppendInt32 appends an int.
func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendInt64 appends a long.
func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendBool appends a boolean, one byte.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendString appends a string; it never writes Java's null.
func AppendString(b []byte, v string) []byte {
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendBuffer appends a buffer, nil as Java's null: a node without data is not a node with no bytes.
func AppendBuffer(b []byte, v []byte) []byte {
	if v == nil {
		return AppendInt32(b, -1)
	}
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendStrings appends a vector of strings. A nil one is written as empty: servers walk the vectors of a
// setWatches without asking whether they are null.
func AppendStrings(b []byte, v []string) []byte {
	b = AppendInt32(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// AppendACLs appends a vector of ACL entries, a nil one as empty.
func AppendACLs(b []byte, v []zk.ACL) []byte {
	b = AppendInt32(b, int32(len(v)))
	for i := range v {
		b = AppendInt32(b, v[i].Perms)
		b = AppendString(b, v[i].Scheme)
		b = AppendString(b, v[i].ID)
	}
	return b
}

// AppendStat appends a node's stat, 68 bytes.
func AppendStat(b []byte, v *zk.Stat) []byte {
	b = AppendInt64(b, v.Czxid)
	b = AppendInt64(b, v.Mzxid)
	b = AppendInt64(b, v.Ctime)
	b = AppendInt64(b, v.Mtime)
	b = AppendInt32(b, v.Version)
	b = AppendInt32(b, v.Cversion)
	b = AppendInt32(b, v.Aversion)
	b = AppendInt64(b, v.EphemeralOwner)
	b = AppendInt32(b, v.DataLength)
	b = AppendInt32(b, v.NumChildren)
	return AppendInt64(b, v.Pzxid)
}

// appendNullable appends a string, an empty one as Java's null.
func appendNullable(b []byte, v string) []byte {
	if v == "" {
		return AppendInt32(b, -1)
	}
	return AppendString(b, v)
}

// appendPath appends chroot+path without building the string; the root of a chroot is the chroot itself.
func appendPath(b []byte, chroot, path string) []byte {
	if chroot != "" && path == "/" {
		path = ""
	}
	b = AppendInt32(b, int32(len(chroot)+len(path)))
	b = append(b, chroot...)
	return append(b, path...)
}
