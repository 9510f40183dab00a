package waitqueue

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/zkpath"
)

// Sequence returns the sequence number of a node with this prefix. ok is false for other nodes.
func Sequence(node, prefix string) (n int32, ok bool) {
	i := strings.LastIndex(node, prefix)
	if i < 0 {
		return 0, false
	}
	number, err := strconv.ParseInt(node[i+len(prefix):], 10, 32)
	return int32(number), err == nil
}

// Before reports whether the server gave number a before number b. The numbers overflow from the largest to the
// smallest int32, so it compares their difference.
func Before(a, b int32) bool { return a-b < 0 }

// numberOf returns the sequence number of a node with one of the prefixes.
func numberOf(node string, prefixes []string) (int32, bool) {
	for _, prefix := range prefixes {
		if n, ok := Sequence(node, prefix); ok {
			return n, true
		}
	}
	return 0, false
}

// Sorted returns the children with one of the prefixes in the order of their numbers, then all others.
func Sorted(children []string, prefixes ...string) []string {
	out := slices.Clone(children)
	slices.SortStableFunc(out, func(a, b string) int {
		na, oka := numberOf(a, prefixes)
		nb, okb := numberOf(b, prefixes)
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

// countBefore returns how many children have a number before that of own.
func countBefore(children []string, own string) (n int) {
	ownNumber, ok := anyNumber(own)
	if !ok {
		return 0
	}
	for _, child := range children {
		if number, ok := anyNumber(child); ok && Before(number, ownNumber) {
			n++
		}
	}
	return n
}

// anyNumber returns the sequence number of a node with any prefix.
func anyNumber(node string) (int32, bool) {
	n, err := strconv.ParseInt(zkpath.SequentialSuffix(node), 10, 32)
	return int32(n), err == nil
}
