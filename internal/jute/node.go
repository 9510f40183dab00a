package jute

import (
	"unsafe"

	"github.com/go-zookeeper/zk"
)

// CopyBeside returns a copy of data, and memory for a Stat in the same object. The copy of nil is nil.
func CopyBeside(data []byte) ([]byte, *zk.Stat) {
	if data == nil {
		return nil, new(zk.Stat)
	}
	// A Stat has no pointers, and words of 64 bits have its alignment.
	const words = int(unsafe.Sizeof(zk.Stat{})+7) / 8
	m := make([]uint64, words+(len(data)+7)/8)
	stat := (*zk.Stat)(unsafe.Pointer(&m[0]))
	if len(data) == 0 {
		return []byte{}, stat
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&m[words])), len(data))
	copy(b, data)
	return b, stat
}

func clone(data []byte) []byte {
	if data == nil {
		return nil
	}
	return append(make([]byte, 0, len(data)), data...)
}
