package lineup

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/zkpath"
)

// Sequence returns the number that the server gave to a node with this name in front of it. Nodes of other kinds have
// none.
func Sequence(node, name string) (int32, bool) {
	i := strings.LastIndex(node, name)
	if i < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(node[i+len(name):], 10, 32)
	return int32(n), err == nil
}

// Before reports whether a was given before b. The server counts on from the largest number to the smallest, so the
// difference tells, not the numbers.
func Before(a, b int32) bool { return a-b < 0 }

// First is the turn of the first in line: each of the others waits for the one before it. One pass, no sorting: there
// may be thousands.
func First(children []string, own string, names ...string) Verdict {
	return Behind(children, own, names, names)
}

// Behind is the turn of those who have nobody of the kinds in rivals before them; names are all kinds that stand in the
// line. They wait for the last of the rivals before them.
func Behind(children []string, own string, names, rivals []string) (v Verdict) {
	mine, ok := numberOf(own, names)
	if !ok {
		return v
	}
	var last int32
	for _, child := range children {
		if child == own {
			v.Found = true
			continue
		}
		n, ok := numberOf(child, rivals)
		if !ok || !Before(n, mine) {
			continue
		}
		if v.Watch == "" || Before(last, n) {
			v.Watch, last = child, n
		}
	}
	v.Granted = v.Watch == ""
	return v
}

// numberOf returns the number of a node of one of the kinds.
func numberOf(node string, names []string) (int32, bool) {
	for _, name := range names {
		if n, ok := Sequence(node, name); ok {
			return n, true
		}
	}
	return 0, false
}

// Sorted returns the children of a line in the order in which they were given their numbers, others behind.
func Sorted(children []string, names ...string) []string {
	out := slices.Clone(children)
	slices.SortStableFunc(out, func(a, b string) int {
		na, oka := numberOf(a, names)
		nb, okb := numberOf(b, names)
		switch {
		case oka && okb && na != nb:
			if Before(na, nb) {
				return -1
			}
			return 1
		case oka != okb && oka:
			return -1
		case oka != okb:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return out
}

// ahead returns how many of the children were given their numbers before own.
func ahead(children []string, own string) (n int) {
	mine, ok := suffix(own)
	if !ok {
		return 0
	}
	for _, child := range children {
		if number, ok := suffix(child); ok && Before(number, mine) {
			n++
		}
	}
	return n
}

// suffix returns the number of a node of any kind.
func suffix(node string) (int32, bool) {
	n, err := strconv.ParseInt(zkpath.SequentialSuffix(node), 10, 32)
	return int32(n), err == nil
}
