package node

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Format of a node with one item or several: the version, then for each item its mark, its length and its bytes, then
// the mark of the end. Java reads no further: the bytes that follow are a trailer of ours, or nothing.
const (
	bytesVersion = 0x00010001
	itemMark     = 0x01
	endMark      = 0x02
)

// Encode returns the data of a node with these items and this trailer.
func Encode(trailer []byte, items ...[]byte) ([]byte, error) {
	n := 5 + len(trailer)
	for _, item := range items {
		if len(item) > math.MaxInt32 {
			return nil, fmt.Errorf("queue: item of %d bytes", len(item))
		}
		n += 5 + len(item)
	}
	data := binary.BigEndian.AppendUint32(make([]byte, 0, n), bytesVersion)
	for _, item := range items {
		data = append(data, itemMark)
		data = binary.BigEndian.AppendUint32(data, uint32(len(item)))
		data = append(data, item...)
	}
	return append(append(data, endMark), trailer...), nil
}

// Decode returns the items of a node's data and the bytes that follow them. They share the memory of data.
func Decode(data []byte) (items [][]byte, trailer []byte, err error) {
	if len(data) < 4 {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(data))
	}
	if v := binary.BigEndian.Uint32(data); v != bytesVersion {
		return nil, nil, fmt.Errorf("%w: version %#08x", ErrCorrupt, v)
	}
	for rest := data[4:]; ; {
		if len(rest) == 0 {
			return nil, nil, fmt.Errorf("%w: no end", ErrCorrupt)
		}
		mark := rest[0]
		rest = rest[1:]
		switch mark {
		case endMark:
			return items, rest, nil
		case itemMark:
		default:
			return nil, nil, fmt.Errorf("%w: mark %#02x", ErrCorrupt, mark)
		}
		if len(rest) < 4 {
			return nil, nil, fmt.Errorf("%w: %d bytes of a length", ErrCorrupt, len(rest))
		}
		n := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if uint64(n) > uint64(len(rest)) {
			return nil, nil, fmt.Errorf("%w: item of %d bytes with %d left", ErrCorrupt, n, len(rest))
		}
		items = append(items, rest[:n:n])
		rest = rest[n:]
	}
}
