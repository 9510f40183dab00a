package queue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// Parts of node names: "queue-", the field of the queue's kind, and the number from the server.
const (
	itemName  = "queue-"
	separator = "|"
)

// elementName is the name prefix of the elements of a simple queue.
const elementName = "qn-"

// nodeName holds the parts of a node's name.
type nodeName struct {
	whole  string
	prefix string // everything before the number: nodes with the same priority, delay or id share it
	field  string // between the separators, or the priority
	number int32
	ok     bool // it has a number
}

// parseName parses a name. It does not find the names of foreign nodes.
func parseName(name string) (n nodeName, found bool) {
	rest, found := strings.CutPrefix(name, itemName)
	if !found {
		return n, false
	}
	n = nodeName{whole: name, prefix: itemName}
	switch i := strings.LastIndex(rest, separator); {
	case strings.HasPrefix(rest, separator) && i > 0:
		n.field, rest = rest[1:i], rest[i+1:]
	case len(rest) >= priorityDigits+10: // the number has 10 digits, with its sign up to 11
		n.field, rest = rest[:priorityDigits], rest[priorityDigits:]
	}
	number, err := strconv.ParseInt(rest, 10, 32)
	if err != nil {
		return n, true // created by hand: also an item
	}
	n.number, n.ok = int32(number), true
	n.prefix = name[:len(name)-len(rest)]
	return n, true
}

// parseElement parses the name of an element of a simple queue. It does not find the names of foreign nodes.
func parseElement(name string) (n nodeName, found bool) {
	rest, found := strings.CutPrefix(name, elementName)
	if !found {
		return n, false
	}
	n = nodeName{whole: name, prefix: elementName}
	if number, err := strconv.ParseInt(rest, 10, 32); err == nil {
		n.number, n.ok = int32(number), true
	}
	return n, true
}

// byNumber orders names as their nodes were created. After the largest number the server continues with the smallest.
func byNumber(a, b nodeName) int {
	switch {
	case a.ok != b.ok && a.ok:
		return -1
	case a.ok != b.ok:
		return 1
	case a.number == b.number:
		return cmp.Compare(a.whole, b.whole)
	case waitqueue.Before(a.number, b.number):
		return -1
	}
	return 1
}

// priorityDigits is the length of a priority in a name: a mark of its sign, so that names sort as priorities do, and
// its bits.
const priorityDigits = 9

func priorityPrefix(priority int32) string {
	sign := '1'
	if priority < 0 {
		sign = '0'
	}
	return fmt.Sprintf("%s%c%08X", itemName, sign, uint32(priority))
}

// priority returns the priority in a name, 0 if there is none.
func (n nodeName) priority() int {
	if len(n.field) != priorityDigits {
		return 0
	}
	bits, err := strconv.ParseUint(n.field[1:], 16, 32)
	if err != nil {
		return 0
	}
	return int(int32(uint32(bits)))
}

// byPriority orders names by priority, the lowest first. Items that Java has put back have lost theirs. They come
// first, as in Java.
func byPriority(a, b nodeName) int {
	if c := cmp.Compare(a.field, b.field); c != 0 {
		return c
	}
	return byNumber(a, b)
}

func delayPrefix(due time.Time) string {
	return fmt.Sprintf("%s%s%08X%s", itemName, separator, max(due.UnixMilli(), 0), separator)
}

// due returns the time in a name; a name without one is due at once.
func (n nodeName) due() time.Time {
	ms, err := strconv.ParseInt(n.field, 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// byDue orders names by the time when they are due.
func byDue(a, b nodeName) int {
	if c := a.due().Compare(b.due()); c != 0 {
		return c
	}
	return byNumber(a, b)
}

var idCleaner = strings.NewReplacer("/", "_", separator, "_")

func idPrefix(id string) string { return itemName + separator + idCleaner.Replace(id) + separator }
