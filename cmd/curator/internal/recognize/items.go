package recognize

import "encoding/binary"

// The bytes of an item of a queue, as Java's ItemSerializer has them: a version, and for each item a mark, the length
// and the bytes, up to the mark of the end.
const (
	itemsVersion = 0x00010001
	itemMark     = 1
	endMark      = 2
)

// Items returns the items in the data of a node of a queue, and false for other data, as in a simple queue.
func Items(data []byte) (items [][]byte, ok bool) {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != itemsVersion {
		return nil, false
	}
	for data = data[4:]; len(data) > 0; {
		mark := data[0]
		data = data[1:]
		if mark == endMark {
			return items, true // what follows is of Curator for Go
		}
		if mark != itemMark || len(data) < 4 {
			return nil, false
		}
		n := binary.BigEndian.Uint32(data)
		if data = data[4:]; uint64(n) > uint64(len(data)) {
			return nil, false
		}
		items = append(items, data[:n:n])
		data = data[n:]
	}
	return nil, false
}
