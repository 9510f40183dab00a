package recognize

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bytes of an item of a queue, as Java's ItemSerializer has them: a version, and for each item a mark, the length
// and the bytes, up to the mark of the end.
const (
	itemsVersion = 0x00010001
	itemMark     = 1
	endMark      = 2
)

// The marks of what Curator for Go writes behind the end. The history comes first.
var (
	historyMark = []byte{0, 'C', 'D', 'C', 2}
	traceMark   = []byte{0, 'C', 'T', 'C', 1}
)

// historySize is the size of a history: the failures and the requeues in 4 bytes each, and the first put in 8.
const historySize = 4 + 4 + 8

// endOfTimes is the end of the year 9999 in milliseconds: JSON has no later time, and would be an error.
const endOfTimes = 253402300800000

// Past is what Curator for Go writes behind the items of a node. Java does not write it.
type Past struct {
	Failures int       // deliveries that have failed
	Put      time.Time // the first put, if the items were put back since; zero if they were not
	Trace    string    // the id of the trace of the put, "" if there is none
}

// Items returns the items in the data of a node of a queue, and false for other data, as in a simple queue.
func Items(data []byte) (items [][]byte, ok bool) {
	items, _, ok = split(data)
	return items, ok
}

// PastOf returns the past of the items in the data of a node of a queue.
func PastOf(data []byte) (p Past) {
	_, trailer, _ := split(data)
	if b, found := bytes.CutPrefix(trailer, historyMark); found && len(b) >= historySize {
		p.Failures = int(binary.BigEndian.Uint32(b))
		put := int64(binary.BigEndian.Uint64(b[8:]))
		if requeues := binary.BigEndian.Uint32(b[4:]); requeues > 0 && put >= 0 && put < endOfTimes {
			p.Put = time.UnixMilli(put).UTC()
		}
		trailer = b[historySize:]
	}
	var carrier struct{ Traceparent string }
	if b, found := bytes.CutPrefix(trailer, traceMark); found && json.Unmarshal(b, &carrier) == nil {
		// version-trace-span-flags, by the W3C.
		if fields := strings.Split(carrier.Traceparent, "-"); len(fields) >= 4 {
			p.Trace = fields[1]
		}
	}
	return p
}

// ItemPrefix returns what the name of an item has in front of the number of the servers, and false for another name.
func ItemPrefix(name string) (prefix string, ok bool) {
	parts := itemName.FindStringSubmatch(name)
	if parts == nil {
		return "", false
	}
	if _, err := strconv.ParseInt(parts[3], 10, 32); err != nil { // no server has given it
		return "", false
	}
	return strings.TrimSuffix(name, parts[3]), true
}

// Kinds returns the kinds of queues that have items with these names. Names of consumers' locks are like those of
// items: leave them out. Items without a field in their names are of a Queue; in a priority or delay queue Java has put
// them back.
func Kinds(names []string) []Recipe {
	var kinds []Recipe
	hex := false // a due time, or the id of an item in an id queue
	for _, name := range names {
		kind := Recipe("")
		switch parts := itemName.FindStringSubmatch(name); {
		case parts == nil && isElement(name):
			kind = SimpleQueue
		case parts == nil:
			continue
		case parts[2] != "":
			kind = PriorityQueue
		case parts[1] == "":
			kind = Queue
		case dueTime.MatchString(parts[1]):
			hex = true
			continue
		default:
			kind = IDQueue
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if hex && !slices.Contains(kinds, IDQueue) {
		kinds = append(kinds, DelayQueue)
	}
	return kinds
}

func isElement(name string) bool {
	_, ok := sequence(name, elementPrefix)
	return ok && strings.HasPrefix(name, elementPrefix)
}

// split returns the items, and the bytes behind them.
func split(data []byte) (items [][]byte, trailer []byte, ok bool) {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != itemsVersion {
		return nil, nil, false
	}
	for data = data[4:]; len(data) > 0; {
		mark := data[0]
		data = data[1:]
		if mark == endMark {
			return items, data, true
		}
		if mark != itemMark || len(data) < 4 {
			return nil, nil, false
		}
		n := binary.BigEndian.Uint32(data)
		if data = data[4:]; uint64(n) > uint64(len(data)) {
			return nil, nil, false
		}
		items = append(items, data[:n:n])
		data = data[n:]
	}
	return nil, nil, false
}
