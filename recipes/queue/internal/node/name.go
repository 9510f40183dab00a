package node

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gocurator/curator/internal/waitqueue"
)

// Parts of node names: "queue-", the field of the queue's kind, and the number from the server.
const (
	ItemPrefix = "queue-"
	separator  = "|"
)

// ElementPrefix is the name prefix of the elements of a simple queue.
const ElementPrefix = "qn-"

// Name holds the parts of a node's name.
type Name struct {
	Whole     string
	Prefix    string // everything before the number: nodes with the same priority, delay or id share it
	Field     string // between the separators, or the priority
	Number    int32
	HasNumber bool // it has a number
}

// ParseName parses a name. It does not find the names of foreign nodes.
func ParseName(name string) (n Name, found bool) {
	rest, found := strings.CutPrefix(name, ItemPrefix)
	if !found {
		return n, false
	}
	n = Name{Whole: name, Prefix: ItemPrefix}
	switch i := strings.LastIndex(rest, separator); {
	case strings.HasPrefix(rest, separator) && i > 0:
		n.Field, rest = rest[1:i], rest[i+1:]
	case len(rest) >= priorityDigits+10: // the number has 10 digits, with its sign up to 11
		n.Field, rest = rest[:priorityDigits], rest[priorityDigits:]
	}
	number, err := strconv.ParseInt(rest, 10, 32)
	if err != nil {
		return n, true // created by hand: also an item
	}
	n.Number, n.HasNumber = int32(number), true
	n.Prefix = name[:len(name)-len(rest)]
	return n, true
}

// ParseElement parses the name of an element of a simple queue. It does not find the names of foreign nodes.
func ParseElement(name string) (n Name, found bool) {
	rest, found := strings.CutPrefix(name, ElementPrefix)
	if !found {
		return n, false
	}
	n = Name{Whole: name, Prefix: ElementPrefix}
	if number, err := strconv.ParseInt(rest, 10, 32); err == nil {
		n.Number, n.HasNumber = int32(number), true
	}
	return n, true
}

// ByNumber orders names as their nodes were created. After the largest number the server continues with the smallest.
func ByNumber(a, b Name) int {
	switch {
	case a.HasNumber != b.HasNumber && a.HasNumber:
		return -1
	case a.HasNumber != b.HasNumber:
		return 1
	case a.Number == b.Number:
		return cmp.Compare(a.Whole, b.Whole)
	case waitqueue.Before(a.Number, b.Number):
		return -1
	}
	return 1
}

// priorityDigits is the length of a priority in a name: a mark of its sign, so that names sort as priorities do, and
// its bits.
const priorityDigits = 9

// PriorityPrefix returns what names with a priority begin with.
func PriorityPrefix(priority int32) string {
	sign := '1'
	if priority < 0 {
		sign = '0'
	}
	return fmt.Sprintf("%s%c%08X", ItemPrefix, sign, uint32(priority))
}

// Priority returns the priority in a name, 0 if there is none.
func (n Name) Priority() int {
	if len(n.Field) != priorityDigits {
		return 0
	}
	bits, err := strconv.ParseUint(n.Field[1:], 16, 32)
	if err != nil {
		return 0
	}
	return int(int32(uint32(bits)))
}

// byPriority orders names by priority, the lowest first. Items that Java has put back have lost theirs. They come
// first, as in Java.
func byPriority(a, b Name) int {
	if c := cmp.Compare(a.Field, b.Field); c != 0 {
		return c
	}
	return ByNumber(a, b)
}

// DelayPrefix returns what names with a due time begin with.
func DelayPrefix(due time.Time) string {
	return fmt.Sprintf("%s%s%08X%s", ItemPrefix, separator, max(due.UnixMilli(), 0), separator)
}

// Due returns the time in a name; a name without one is due at once.
func (n Name) Due() time.Time {
	ms, err := strconv.ParseInt(n.Field, 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// ByDue orders names by the time when they are due.
func ByDue(a, b Name) int {
	if c := a.Due().Compare(b.Due()); c != 0 {
		return c
	}
	return ByNumber(a, b)
}

var idCleaner = strings.NewReplacer("/", "_", separator, "_")

// IDPrefix returns what names with an id begin with.
func IDPrefix(id string) string { return ItemPrefix + separator + idCleaner.Replace(id) + separator }
