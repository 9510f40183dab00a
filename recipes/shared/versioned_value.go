package shared

import "github.com/go-zookeeper/zk"

// VersionedValue is a value and the write that it comes from. In Java: VersionedValue.
type VersionedValue[T any] struct {
	Value T
	// Version is the version of the node's data: -1 if the value is the seed and the node was not read yet. After 2^31
	// writes it begins again with negative numbers.
	Version int32
	// Zxid is the transaction of the write, -1 if the node was not read yet. A later write has a higher one, also if the
	// node was deleted and created in between.
	Zxid int64

	czxid int64 // of the node; 0 if it is not known
}

// stat returns what is known of the Stat of the node.
func (v VersionedValue[T]) stat() zk.Stat {
	return zk.Stat{Version: v.Version, Mzxid: v.Zxid, Czxid: v.czxid}
}

// versioned returns a value with the versions of a Stat.
func versioned[T any](value T, stat *zk.Stat) VersionedValue[T] {
	return VersionedValue[T]{Value: value, Version: stat.Version, Zxid: stat.Mzxid, czxid: stat.Czxid}
}

// with returns v with another value.
func with[T, U any](v VersionedValue[T], value U) VersionedValue[U] {
	return VersionedValue[U]{Value: value, Version: v.Version, Zxid: v.Zxid, czxid: v.czxid}
}
